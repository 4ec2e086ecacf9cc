// The page: one document after the other, from the text to the set that is taken.

import { drop, isStale, Problem } from "./api.js";
import { at, count, make, key, number, percent, say } from "./elements.js";
import { clearQueue, countOf, exported, guessAll, loadQueue, nextOpen, orderOf, saveQueue, startQueue, undecided } from "./queue.js";
import { forget, light, showAttention, showText } from "./reading.js";
import { drawOrders, drawResults, showAll } from "./results.js";
import { asLine, isQueue, readRows } from "./rows.js";
import { makeSearch } from "./search.js";
import { openStore } from "./store.js";
import * as tagging from "./tagging.js";
import { attempt, clearTrouble, showTrouble } from "./trouble.js";

const PASTED = "pasted"; // the key of the one document that is in no queue
const WAIT = 120; // ms between a decision and the question that follows from it
const MOST_UNDO = 100;
const RULES = {
  set: "the most probable set",
  sequence: "the set of the best sequence",
  f1: "the set of best expected F1",
  hamming: "labels over 50%",
  "micro-f1": "labels over one threshold",
  "label-f1": "labels over their own thresholds",
};

const store = await openStore();
const choice = JSON.parse(localStorage.getItem("setrnn-choice") ?? "{}");
let queue = null;
let current = null; // {position, document, decision, prediction, completion, past}
let pointed = null; // the label under the pointer
let timer = 0;
let guessing = 0; // counts the passes over a queue: a newer one ends the older

// ---- one document

async function show(position, document, decision) {
  for (const kind of ["tag", "complete", "explain"]) drop(kind);
  clearTimeout(timer);
  clearTrouble();
  current = { position, document, decision, prediction: null, completion: null, past: [] };
  showText(document.text);
  drawOrders(null);
  showAll(false);
  at("text-form").hidden = true;
  at("reading").hidden = false;
  at("welcome").hidden = true;
  at("results").hidden = true;
  say(at("features"), document.features.length ? `Features: ${document.features.join(", ")}` : "");
  say(at("cut"), tagging.isCut(document) ? tagging.cutHint(document) : "");
  drawFrame();
  await ask();
}

// Ask all anew: the model, the rule or the document is another.
async function ask() {
  const asked = current;
  await attempt(async () => {
    await ready();
    const [prediction, completion] = await Promise.all([
      tagging.predict(asked.document),
      tagging.complete(asked.document, asked.decision),
    ]);
    if (asked !== current) return;
    Object.assign(current, { prediction, completion });
    at("results").hidden = false;
    draw();
    announce();
  });
  if (asked === current && current.prediction) explain();
}

async function explain() {
  const asked = current;
  if (!tagging.server.model.can_explain) {
    forget(`A ${tagging.server.model.method} model does not tell which words it looked at.`);
    drawOrders(null);
    return;
  }
  try {
    const explanation = await tagging.explain(asked.document);
    if (asked !== current) return;
    showAttention(explanation);
    drawOrders(explanation, tagging.ordersHint(current.decision));
    lightUp();
  } catch (error) {
    if (!isStale(error) && asked === current) forget(`No words to show. ${error.message}`);
  }
}

async function completeSoon() {
  const asked = current;
  clearTimeout(timer);
  drop("complete");
  at("results").setAttribute("aria-busy", "true");
  timer = setTimeout(
    () =>
      attempt(async () => {
        const completion = await tagging.complete(asked.document, asked.decision);
        if (asked !== current) return;
        current.completion = completion;
        draw();
        announce();
      }),
    WAIT,
  );
}

function draw() {
  at("results").removeAttribute("aria-busy");
  drawResults(tagging.viewOf(current));
  at("orders-hint").textContent = tagging.ordersHint(current.decision);
  drawFrame();
  lightUp();
}

function announce() {
  const { labels, probability, confidence, suggestion } = tagging.viewOf(current);
  const parts = [`Labels: ${labels.join(", ") || "none"}.`];
  if (probability !== null) parts.push(`Probability ${percent(probability)}, ${confidence.text}.`);
  if (suggestion) parts.push(`Next: ${suggestion.label}, ${percent(suggestion.probability)}.`);
  at("status").textContent = parts.join(" ");
}

// Buttons and badges around the document.
function drawFrame() {
  const { position, decision, document } = current;
  const isQueued = position !== PASTED;
  at("document-title").textContent = isQueued ? (document.id ?? `Document ${number(position + 1)}`) : "Document";
  say(at("document-status"), decision.status === "open" ? "" : decision.status);
  at("edit").hidden = isQueued;
  at("new").hidden = isQueued;
  at("done-text").textContent = isQueued ? "Done: take this set, next" : "Done: take this set";
  at("done").disabled = decision.status === "done" && !isQueued;
  at("save").hidden = isQueued || decision.status !== "done";
  at("undo").disabled = current.past.length === 0;
  drawQueue();
}

function change(decision) {
  current.past = [...current.past.slice(1 - MOST_UNDO), current.decision];
  keep(decision);
}

function keep(decision) {
  decision.guess = current.decision.guess;
  current.decision = decision;
  if (queue && current.position !== PASTED) queue.decisions[current.position] = decision;
  store.put("decisions", current.position, decision).catch(showTrouble);
  if (current.prediction) draw();
}

function decide(label, state) {
  change(tagging.decide(current.decision, label, state));
  completeSoon();
}

// A click goes round: accepted, rejected, undecided.
function turn(label) {
  const next = { open: "accepted", accepted: "rejected", rejected: "open" };
  decide(label, next[tagging.stateOf(current.decision, label)]);
}

function take(labels) {
  const { present, absent } = current.decision;
  const shown = tagging.viewOf(current).labels;
  const rejected = [...absent, ...present, ...shown].filter((label) => !labels.includes(label));
  change({ ...current.decision, present: labels, absent: [...new Set(rejected)], status: "open", labels: null });
  completeSoon();
}

function answer(state) {
  const suggestion = current?.prediction && tagging.viewOf(current).suggestion;
  if (suggestion) decide(suggestion.label, state);
}

async function done() {
  if (!current?.prediction) return;
  const { labels } = tagging.viewOf(current);
  change({ ...current.decision, present: labels, status: "done", labels });
  if (current.position === PASTED) completeSoon();
  else await goOn();
}

function undo() {
  if (!current?.past.length) return;
  const { past } = current;
  keep(past.at(-1));
  current.past = past.slice(0, -1);
  draw();
  completeSoon();
}

// ---- the pasted text

async function tagPasted() {
  const text = at("text").value;
  if (!text.trim()) {
    showTrouble(new Problem(400, "There is no text yet. Paste one, or drop a file."));
    at("text").focus();
    return;
  }
  const document = { id: null, text, labels: [], features: [] };
  const decision = undecided();
  await store.put("documents", PASTED, document);
  await store.put("decisions", PASTED, decision);
  await show(PASTED, document, decision);
  at("suggestion").querySelector("button")?.focus();
}

function edit(text) {
  for (const kind of ["tag", "complete", "explain"]) drop(kind);
  current = null;
  clearTrouble();
  at("text").value = text;
  for (const id of ["reading", "results", "edit", "new", "queue", "features", "cut", "document-status"]) at(id).hidden = true;
  forget("");
  at("document-title").textContent = "Document";
  at("text-form").hidden = false;
  at("welcome").hidden = false;
  at("text").focus();
}

async function leavePasted(text) {
  await store.put("documents", PASTED, null);
  edit(text);
}

// ---- the queue

async function go(place) {
  queue.place = place;
  saveQueue(store, queue);
  const position = queue.order[place];
  await show(position, await store.get("documents", position), queue.decisions[position]);
}

function step(by) {
  if (!queue) return;
  const place = queue.place + by;
  if (place >= 0 && place < queue.n) move(place);
}

// Go there, and bring eyes and focus along.
async function move(place) {
  await go(place);
  at("document").scrollIntoView({ block: "nearest" });
  if (document.activeElement === document.body) {
    at("suggestion").querySelector("button")?.focus({ preventScroll: true });
  }
}

async function goOn() {
  const place = nextOpen(queue);
  if (place !== null) return move(place);
  const text = "No document is open any more. Export what you decided.";
  say(at("queue-hint"), text);
  at("status").textContent = text;
  return undefined;
}

async function skip() {
  if (!queue || !current) return;
  if (current.decision.status === "open") change({ ...current.decision, status: "skipped" });
  drawFrame();
  await goOn();
}

function drawQueue() {
  at("queue").hidden = queue === null;
  if (queue === null) return;
  const nDone = countOf(queue, "done");
  const nSkipped = countOf(queue, "skipped");
  at("queue-name").textContent = queue.name;
  at("queue-place").textContent = `${number(queue.place + 1)} of ${number(queue.n)}`;
  at("queue-progress").max = queue.n;
  at("queue-progress").value = nDone;
  at("queue-done").textContent = `${number(nDone)} done${nSkipped ? `, ${number(nSkipped)} skipped` : ""}`;
  at("previous").disabled = queue.place === 0;
  at("next").disabled = queue.place === queue.n - 1;
  at("export").disabled = nDone === 0;
  at("export").textContent = nDone ? `Export ${number(nDone)}` : "Export";
  at("order").value = queue.orderBy;
}

async function reorder(orderBy) {
  const mine = (guessing += 1);
  const over = () => mine !== guessing || queue === null;
  const position = queue.order[queue.place];
  if (orderBy !== "file") {
    const progress = (n, all) => say(at("queue-hint"), `The model reads ahead: ${number(n)} of ${number(all)} …`);
    await ready();
    const by = `${tagging.server.model.name}, ${tagging.server.model.version}, ${tagging.server.rule}`;
    await guessAll(store, queue, by, guessPatiently, over, progress);
    if (over()) return;
  }
  queue.orderBy = orderBy;
  queue.order = orderOf(queue, orderBy);
  queue.place = queue.order.indexOf(position);
  await saveQueue(store, queue);
  say(at("queue-hint"), orderHint(orderBy));
  await go(nextFromStart());
}

// The first open document of a new order; where none is open, the first.
function nextFromStart() {
  queue.place = queue.n - 1;
  return nextOpen(queue) ?? 0;
}

function orderHint(orderBy) {
  if (orderBy === "file") return "";
  const known = queue.decisions.filter((each) => each.guess?.accepted != null);
  if (!known.length) return "This model has no acceptance for this rule: ordered by probability.";
  const nAccepted = known.filter((each) => each.guess.accepted).length;
  return `The model accepts ${number(nAccepted)} of ${count(queue.n, "document")}.`;
}

// A busy server is asked again; a document it refuses goes to the ones to be reviewed.
async function guessPatiently(documents) {
  try {
    return await tagging.guess(documents);
  } catch (error) {
    if (error.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter ?? 2)));
      return guessPatiently(documents);
    }
    if (error.status !== 413 && error.status !== 422) throw error;
    if (documents.length === 1) return [{ accepted: false, probability: 0 }];
    return (await Promise.all(documents.map((each) => guessPatiently([each])))).flat();
  }
}

function saveFile(name, lines) {
  const url = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function exportQueue() {
  const name = `${queue.name.replace(/\.[^.]*$/, "")}-tagged.jsonl`;
  saveFile(name, await exported(store, queue));
}

function confirmed(text, yes) {
  at("question-text").textContent = text;
  at("question-yes").textContent = yes;
  at("question").returnValue = "no";
  at("question").showModal();
  return new Promise((resolve) => {
    at("question").addEventListener("close", () => resolve(at("question").returnValue === "yes"), { once: true });
  });
}

function lossOf() {
  const nDone = countOf(queue, "done");
  const lost = nDone ? `What you decided about ${count(nDone, "document")} goes with it, unless you exported it.` : "";
  return `${queue.name}, ${count(queue.n, "document")}. ${lost}`;
}

async function clear() {
  if (!(await confirmed(`Clear the queue? ${lossOf()}`, "Clear the queue"))) return;
  guessing += 1;
  queue = null;
  await clearQueue(store);
  say(at("queue-hint"), "");
  edit("");
}

async function openFile(file) {
  const content = await file.text();
  if (!isQueue(file.name)) {
    if (queue) throw new Error("A queue is open. Clear it to tag a single text.");
    edit(content);
    return tagPasted();
  }
  const { documents, left } = readRows(file.name, content);
  if (!documents.length) {
    throw new Error([`${file.name} has no document.`, ...left.slice(0, 1)].join(" It begins so: "));
  }
  if (queue && !(await confirmed(`Replace the queue? ${lossOf()}`, "Replace it"))) return undefined;
  guessing += 1;
  queue = null;
  edit("");
  queue = await startQueue(store, file.name, documents);
  say(at("queue-hint"), leftOut(left));
  return go(0);
}

function leftOut(left) {
  if (!left.length) return store.isKept ? "" : "This browser keeps nothing for this page: export before you close it.";
  const more = left.length > 3 ? ` and ${number(left.length - 3)} more` : "";
  return `${count(left.length, "row")} left out: ${left.slice(0, 3).join("; ")}${more}`;
}

// ---- model and rule

async function ready() {
  if (tagging.server.model) return;
  await tagging.loadModels();
  tagging.chooseModel(choice.model, choice.rule);
  drawChoosers();
}

function drawChoosers() {
  const { models, model, rule } = tagging.server;
  const options = (names, chosen) =>
    names.map((name) => make("option", { value: name, textContent: name, selected: name === chosen }));
  at("model").replaceChildren(...options(models.map((each) => each.name), model.name));
  at("model-field").hidden = models.length < 2;
  at("rule").replaceChildren(...options(model.rules, rule));
  for (const option of at("rule").options) option.textContent += `: ${RULES[option.value] ?? ""}`;
  const data = model.data ? `, trained on ${model.data}` : "";
  at("about").textContent = `${model.method}, ${count(model.n_labels, "label")}${data}`;
  at("about").title = `${model.name}, version ${model.version}`;
}

async function choose(name, rule) {
  tagging.chooseModel(name, rule);
  Object.assign(choice, { model: tagging.server.model.name, rule: tagging.server.rule });
  localStorage.setItem("setrnn-choice", JSON.stringify(choice));
  drawChoosers();
  guessing += 1;
  if (current) await ask();
}

// ---- keys, pointers, files

const KEYS = {
  y: ["accept the suggestion", () => answer("accepted")],
  n: ["reject the suggestion", () => answer("rejected")],
  d: ["done: take the set as it is shown; in a queue, go to the next open document", () => attempt(done)],
  u: ["undo the last decision about this document", undo],
  "/": ["search for a label to add", () => current && at("search").focus()],
  j: ["next document of the queue", () => step(1)],
  k: ["previous document", () => step(-1)],
  s: ["skip this document", () => attempt(skip)],
  e: ["edit the text", () => at("edit").hidden || at("edit").click()],
  "?": ["show these keys", () => { at("keys").open = !at("keys").open; }],
};

function drawKeys() {
  const more = [
    ["Enter", "on a label: accept it, again: reject it, again: neither"],
    ["Delete", "on a label: reject it"],
  ];
  const rows = [...Object.entries(KEYS).map(([name, [what]]) => [name, what]), ...more];
  at("key-list").replaceChildren(
    ...rows.map(([name, what]) => make("div", {}, make("dt", {}, key(name)), make("dd", { textContent: what }))),
  );
}

document.addEventListener("keydown", (event) => {
  const { target } = event;
  const isTyping = target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Delete" && target.dataset.label) return decide(target.dataset.label, "rejected");
  if (!at("keys-on").checked || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key][1]();
});

const ACTS = {
  turn: ({ label }) => turn(label),
  accept: ({ label }) => decide(label, "accepted"),
  reject: ({ label }) => decide(label, tagging.stateOf(current.decision, label) === "rejected" ? "open" : "rejected"),
  take: ({ labels }) => take(JSON.parse(labels)),
};

at("results").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-act]");
  if (button) ACTS[button.dataset.act](button.dataset);
});
// The label under the pointer, or that of the focus, or the suggestion.
function lightUp() {
  const focused = document.activeElement.closest("#results [data-label]")?.dataset.label;
  const suggestion = current?.prediction && tagging.viewOf(current).suggestion;
  light(pointed ?? focused ?? suggestion?.label ?? null);
}
at("results").addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch") return;
  pointed = event.target.closest("[data-label]")?.dataset.label ?? null;
  lightUp();
});
at("results").addEventListener("pointerleave", () => { pointed = null; lightUp(); });
at("results").addEventListener("focusin", lightUp);
at("results").addEventListener("focusout", () => setTimeout(lightUp));

at("text-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(tagPasted); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("text-form").requestSubmit();
});
at("text").addEventListener("paste", () => {
  if (!at("text").value) setTimeout(() => at("text-form").requestSubmit());
});
at("edit").addEventListener("click", () => attempt(() => leavePasted(current.document.text)));
at("new").addEventListener("click", () => attempt(() => leavePasted("")));
at("done").addEventListener("click", () => attempt(done));
at("undo").addEventListener("click", undo);
at("save").addEventListener("click", () => saveFile("document-tagged.jsonl", [asLine(current.document, current.decision.labels)]));
at("more").addEventListener("click", () => { showAll(at("more").textContent !== "Show fewer"); draw(); });
at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));
at("skip").addEventListener("click", () => attempt(skip));
at("export").addEventListener("click", () => attempt(exportQueue));
at("clear").addEventListener("click", () => attempt(clear));
at("order").addEventListener("change", () => attempt(() => reorder(at("order").value)));
at("model").addEventListener("change", () => attempt(() => choose(at("model").value, at("rule").value)));
at("rule").addEventListener("change", () => attempt(() => choose(at("model").value, at("rule").value)));
at("file").addEventListener("change", () => {
  const [file] = at("file").files;
  at("file").value = "";
  if (file) attempt(() => openFile(file));
});
document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("is-dropping"); });
document.addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("is-dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("is-dropping");
  const [file] = event.dataTransfer.files;
  if (file) attempt(() => openFile(file));
  else if (!queue) {
    edit(event.dataTransfer.getData("text/plain"));
    attempt(tagPasted);
  }
});
at("keys-on").checked = localStorage.getItem("setrnn-keys") !== "off";
at("keys-on").addEventListener("change", () => localStorage.setItem("setrnn-keys", at("keys-on").checked ? "on" : "off"));

makeSearch(
  (prefix) => attempt(() => tagging.findLabels(prefix)),
  (label, isKnown) => {
    tagging.remember([label], isKnown);
    decide(label, "accepted");
  },
);

// ---- begin, or go on where the person left

drawKeys();
queue = await loadQueue(store);
const pasted = await store.get("documents", PASTED);
if (queue) await go(queue.place);
else if (pasted) await show(PASTED, pasted, (await store.get("decisions", PASTED)) ?? undecided());
else await attempt(ready);
document.documentElement.dataset.ready = "true";
