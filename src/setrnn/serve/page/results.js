// The predictions of a document, drawn: the set, other sets, all labels, the orders.

import { at, bar, count, key, make, named, percent, roundPercent, say } from "./elements.js";

const N_ROWS = 12; // labels shown before "Show all"
const N_SETS = 4; // sets whose orders are drawn
const MIN_EDGE = 0.02; // the probability of an order that is wide enough for an edge
const LONG = 60; // characters: longer labels may be cut
const SURPRISE = 0.05; // p(known | x) below which a hint is shown
const STATES = { accepted: "accepted", rejected: "rejected", proposed: "proposed", settled: "settled", open: "undecided" };

let showsAll = false;

export function showAll(value) {
  showsAll = value;
}

export function drawResults(view) {
  drawSet(view);
  drawSuggestion(view);
  drawAlternatives(view);
  drawMarginals(view);
}

// Replace the items of a list, and keep the focus on the same button.
function redraw(list, children) {
  const place = list.contains(document.activeElement) ? document.activeElement.dataset.place : null;
  const index = place && [...list.querySelectorAll("[data-place]")].indexOf(document.activeElement);
  list.replaceChildren(...children);
  if (!place) return;
  const buttons = [...list.querySelectorAll("[data-place]")];
  const same = buttons.find((button) => button.dataset.place === place);
  const next = same ?? buttons[Math.min(index, buttons.length - 1)] ?? list.closest("section");
  next?.focus({ preventScroll: true }); // no scrolling while the person reads
}

function labelButton(label, state, note = "") {
  const spoken = [STATES[state], note].filter(Boolean).join(", ");
  return make(
    "button",
    {
      type: "button",
      className: "label",
      title: label.length > LONG ? label : "",
      data: { label, act: "turn", place: `turn ${label}` },
      aria: { label: `${label}: ${spoken}`, pressed: state === "accepted" },
    },
    make("span", { className: "sign", ariaHidden: "true" }),
    named(label),
  );
}

// By keyboard, Delete on the label does the same: one tab stop per label is enough.
const rejectButton = (label) =>
  make("button", {
    type: "button",
    className: "reject",
    textContent: "✕",
    title: `Reject ${label}`,
    tabIndex: -1,
    data: { label, act: "reject", place: `reject ${label}` },
    aria: { label: `Reject ${label}` },
  });

function chip(label, state, { note = "", probability = null } = {}) {
  const number = probability === null ? "" : roundPercent(probability);
  const buttons = [labelButton(label, state, note || number)];
  if (state !== "rejected") buttons.push(rejectButton(label));
  const parts = note ? [make("small", { textContent: note })] : [];
  if (number) parts.push(make("span", { className: "number hint", textContent: number, ariaHidden: "true" }));
  return make("li", { className: `chip is-${state}` }, buttons[0], ...parts, ...buttons.slice(1));
}

function drawSet(view) {
  const chips = view.labels.map((label) => {
    const isAccepted = view.present.includes(label);
    const probability = isAccepted ? null : (view.probabilities.get(label) ?? null);
    const note = view.isNew(label) ? "new" : "";
    return chip(label, isAccepted ? "accepted" : view.stateOf(label), { note, probability });
  });
  if (!chips.length) chips.push(make("li", { className: "none", textContent: "no labels" }));
  chips.push(...view.absent.map((label) => chip(label, "rejected")));
  redraw(at("set"), chips);
  at("probability").textContent = view.probability === null ? "" : percent(view.probability);
  const badge = at("confidence");
  badge.className = `badge ${view.confidence.kind}`;
  badge.textContent = view.confidence.text;
  badge.title = view.confidence.why;
  say(at("set-hint"), setHint(view));
}

function setHint(view) {
  const hints = [...view.notes, view.confidence.why];
  if (view.isFitting === false) hints.push("No set that the model knows agrees with all your decisions.");
  else if (view.knownProbability !== null && view.knownProbability < SURPRISE) {
    const given = percent(view.knownProbability);
    hints.push(`The model gave your decisions a probability of only ${given}.`);
  }
  if (view.isGiven) hints.push("After a decision, probabilities are not calibrated.");
  if (view.rarerHint) hints.push(view.rarerHint);
  if (view.settledHint) hints.push(view.settledHint);
  if (view.isProved) hints.push("Proved: no other set is more probable.");
  return hints.filter(Boolean).join(" ");
}

function drawSuggestion(view) {
  const { suggestion } = view;
  if (suggestion === null) {
    const hadFocus = at("suggestion").contains(document.activeElement);
    redraw(at("suggestion"), view.isDone ? [] : [noQuestion()]);
    if (hadFocus) at("done").focus({ preventScroll: true });
    return;
  }
  const isIn = view.labels.includes(suggestion.label);
  const question = isIn ? "Is this right?" : "Add this one?";
  const button = (act, name, text) =>
    make(
      "button",
      { type: "button", className: act, data: { act, label: suggestion.label, place: act } },
      key(name),
      ` ${text}`,
    );
  redraw(at("suggestion"), [
    make(
      "p",
      { data: { label: suggestion.label } },
      make("span", { className: "hint", textContent: `${question} ` }),
      make("strong", { textContent: suggestion.label, dir: "auto" }),
      make("span", { className: "number", textContent: ` ${percent(suggestion.probability)}` }),
    ),
    button("accept", "y", "Accept"),
    button("reject", "n", "Reject"),
  ]);
}

const noQuestion = () =>
  make(
    "p",
    { className: "hint" },
    "No label is in doubt.",
    make("span", { className: "only-keys" }, " ", key("d"), " takes the set."),
  );

const nothing = (text) => make("li", { className: "none hint", textContent: text });

const joined = (labels, between) =>
  labels.flatMap((label, i) => (i ? [between, named(label)] : [named(label)]));

function drawAlternatives(view) {
  const rows = view.alternatives.map(({ labels, probability }) => {
    const added = new Set(labels.filter((label) => !view.labels.includes(label)));
    const names = labels.map((label) =>
      make("bdi", { textContent: label, dir: "auto", className: added.has(label) ? "added" : "" }),
    );
    const spoken = `Take this set: ${labels.join(", ") || "no labels"}`;
    const shown = names.length ? names : [make("em", { textContent: "no labels" })];
    return make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          className: "take",
          title: "Take this set",
          aria: { label: spoken },
          data: { act: "take", labels: JSON.stringify(labels), place: `take ${labels.join("\n")}` },
        },
        ...shown,
      ),
      bar(probability),
      make("span", { className: "number", textContent: percent(probability) }),
    );
  });
  if (!rows.length) rows.push(nothing("No other set is likely."));
  redraw(at("alternatives"), rows);
}

function drawMarginals(view) {
  const shown = showsAll ? view.rows : view.rows.slice(0, N_ROWS);
  const rows = shown.map(({ label, probability, accepted_from: from = null }) =>
    make(
      "li",
      { className: `is-${view.stateOf(label)}` },
      labelButton(label, view.stateOf(label), noteOn(probability, from)),
      bar(probability, view.labels.includes(label) ? "is-in" : "", from),
      make("span", { className: "number", textContent: percent(probability) }),
      rejectButton(label),
    ),
  );
  if (!rows.length) rows.push(nothing("No other label is likely."));
  redraw(at("marginals"), rows);
  say(at("marginals-hint"), view.rowsHint);
  at("more").hidden = view.rows.length <= N_ROWS;
  at("more").textContent = showsAll ? "Show fewer" : `Show all ${view.rows.length}`;
}

const noteOn = (probability, from) =>
  from === null ? percent(probability) : `${percent(probability)}, settled from ${percent(from)}`;

// Each set is a bar of its orders: first the set shown, whose orders are listed below, then the
// predicted ones.
export function drawOrders(predicted, shown = null) {
  at("orders-section").hidden = predicted === null;
  if (predicted === null) return;
  const [first, ...firstOrders] = setsOf(shown ?? predicted)[0];
  const others = setsOf(predicted).filter(([set]) => !isSameSet(set, first));
  const sets = [[first, ...firstOrders], ...others].slice(0, N_SETS);
  at("orders").replaceChildren(
    ...sets.map(([set, ...orders]) => setOfOrders(set, orders)),
    orderList(first, firstOrders),
  );
}

const setsOf = ({ sets, sequences }) =>
  sets.map((set) => [set, ...sequences.filter((each) => each.set === set.name)]);

const isSameSet = (a, b) =>
  a.labels.length === b.labels.length && a.labels.every((label) => b.labels.includes(label));

function setOfOrders(set, orders) {
  const track = make("span", { className: "track orders", ariaHidden: "true" });
  for (const width of [...orders.map((each) => each.probability), unlisted(set, orders)]) {
    const block = make("i", { className: width < MIN_EDGE ? "is-thin" : "" });
    block.style.width = `${100 * width}%`;
    track.append(block);
  }
  const names = joined(set.labels, ", ");
  return make(
    "div",
    { className: "set-of-orders" },
    make("span", {}, ...(names.length ? names : ["no labels"])),
    track,
    make("span", { className: "number", textContent: percent(set.probability) }),
  );
}

const unlisted = (set, orders) =>
  Math.max(0, set.probability - orders.reduce((sum, each) => sum + each.probability, 0));

function orderList(set, orders) {
  const rows = orders.map((each) =>
    make(
      "li",
      {},
      make("span", {}, ...joined(each.labels, " → ")),
      make("span", { className: "number", textContent: percent(each.probability) }),
    ),
  );
  const total = [make("span", { textContent: sumOf(set, orders) })];
  total.push(make("span", { className: "number", textContent: percent(set.probability) }));
  return make("ol", { className: "order-list" }, ...rows, make("li", { className: "total" }, ...total));
}

function sumOf(set, orders) {
  if (!orders.length) return "none of its orders was found by the search";
  const rest = unlisted(set, orders);
  const unseen = rest > 0.0005 ? `, and ${percent(rest)} from orders that are not listed` : "";
  const bound = set.is_exact ? "" : " (a lower bound: not all orders were searched)";
  return `sum of ${count(orders.length, "order")}${unseen}${bound}`;
}
