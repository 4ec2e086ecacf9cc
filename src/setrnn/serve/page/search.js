// The search field for labels to add: a combobox.

import { at, count, make, named, say } from "./elements.js";
import { attempt } from "./trouble.js";

const WAIT = 80; // ms after a key press
const N_ASKED = 50;
const N_SHOWN = 8;

// Labels that end with the typed text come before longer ones.
function nearest(labels, prefix) {
  const ends = ({ label }) => label.toLowerCase().endsWith(prefix.toLowerCase());
  return [...labels.filter(ends), ...labels.filter((each) => !ends(each))].slice(0, N_SHOWN);
}

// `find(prefix, limit)` returns {labels: [{label, count}], n_matching}; `findAdded(prefix)` the labels
// of the queue that are new to the model, likewise; `choose(label, isKnown)` takes one; isKnown is
// null if it is unclear whether the model has the label.
export function makeSearch(find, findAdded, choose) {
  const field = at("search");
  const list = at("found");
  let options = [];
  let active = -1;
  let timer = 0;
  let asked = 0;

  function close() {
    clearTimeout(timer);
    asked += 1; // a pending answer is ignored
    list.hidden = true;
    options = [];
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function activate(index) {
    active = index;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
    if (index < 0) return;
    field.setAttribute("aria-activedescendant", list.children[index].id);
    list.children[index].scrollIntoView({ block: "nearest" });
  }

  function take(index) {
    const option = options[index];
    field.value = "";
    close();
    if (option) choose(option.label, option.isKnown);
  }

  async function search() {
    const prefix = field.value.trim();
    if (!prefix) return close();
    const mine = (asked += 1);
    const [found, added] = await Promise.all([find(prefix, N_ASKED), findAdded(prefix)]);
    if (mine !== asked) return undefined;
    options = [
      ...nearest(found.labels, prefix).map((each) => ({ ...each, isKnown: true })),
      ...nearest(added, prefix).map((each) => ({ ...each, isKnown: false })),
    ];
    const isSame = ({ label }) => label.toLowerCase() === prefix.toLowerCase();
    const isNew = found.n_matching <= found.labels.length; // otherwise it may be among those not returned
    if (![...found.labels, ...added].some(isSame)) options.push({ label: prefix, isKnown: isNew ? false : null });
    list.replaceChildren(...options.map(item));
    list.hidden = false;
    list.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-expanded", "true");
    activate(0);
    say(at("status"), `${count(options.length, "label")} found`);
    return undefined;
  }

  function item(option, index) {
    const [what, note] = noteOn(option);
    return make(
      "li",
      {
        id: `found-${index}`,
        role: "option",
        on: {
          pointerdown: (event) => event.preventDefault(), // keep the focus in the field
          click: () => take(index),
        },
      },
      make("span", {}, ...what),
      make("small", { textContent: note }),
    );
  }

  function noteOn({ label, isKnown, count: n }) {
    if (isKnown) return [[named(label)], count(n, "document")];
    if (n) return [[named(label)], `new, ${count(n, "document")} of this queue`];
    return [["Add “", named(label), "” as a new label"], "unknown to the model"];
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt(search), WAIT);
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const last = options.length - 1;
    const keys = {
      ArrowDown: () => last >= 0 && activate(active >= last ? 0 : active + 1),
      ArrowUp: () => last >= 0 && activate(active <= 0 ? last : active - 1),
      Enter: () => (list.hidden ? attempt(search) : take(active)),
      Escape: () => (list.hidden ? field.blur() : close()),
      // No label begins with the key that leads here.
      ...(!field.value && at("keys-on").checked && { "/": () => {} }),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
}
