// The tree of a model's labels, to browse: a tree view by keyboard and pointer. Children are drawn
// when their parent is opened first; a label with several parents is below each of them.

import { isStale } from "./api.js";
import { at, count, make, named, number } from "./elements.js";
import { loadTree, server, tree } from "./tagging.js";

const STATES = { accepted: "accepted", rejected: "rejected", proposed: "in the set", settled: "settled", open: "" };

let stateOf = () => "open"; // of a label of the document shown

// Show the tree of the chosen model, if it has one.
export async function showTree() {
  at("tree-section").hidden = true;
  at("tree").replaceChildren();
  try {
    if (!(await loadTree())) return;
  } catch (error) {
    if (isStale(error)) return;
    throw error;
  }
  const { n_labels: n, roots, nodes } = tree;
  const brings = server.model.keeps_closed
    ? "A label brings those above it; a rejected label takes those below it away."
    : "A label need not bring those above it.";
  const few = nodes.size < n ? ` The ${number(nodes.size)} most frequent of ${count(n, "label")}.` : "";
  at("tree-hint").textContent = `${brings}${few}`;
  at("tree").append(...roots.map((label) => item(label, 1)));
  moveStop(at("tree").firstElementChild);
  at("tree-section").hidden = false;
}

function item(label, level) {
  const { children } = tree.nodes.get(label);
  const element = make(
    "li",
    { tabIndex: -1, data: { label }, aria: { level } },
    make(
      "div",
      { className: "row" },
      make("span", { className: "twist", ariaHidden: "true" }),
      make("span", { className: "name" }, make("span", { className: "sign", ariaHidden: "true" }), named(label)),
      make("span", { className: "number hint", textContent: number(tree.nodes.get(label).count), ariaHidden: "true" }),
    ),
  );
  element.setAttribute("role", "treeitem");
  if (children.length) element.setAttribute("aria-expanded", "false");
  mark(element);
  return element;
}

function mark(element) {
  const { label } = element.dataset;
  const state = stateOf(label);
  element.className = `is-${state}`;
  const { count: n, children } = tree.nodes.get(label);
  const below = children.length ? `${count(children.length, "label")} below` : "";
  const spoken = [STATES[state], count(n, "document"), below].filter(Boolean).join(", ");
  element.setAttribute("aria-label", `${label}: ${spoken}`);
}

// Mark the labels of the document shown.
export function drawTree(view) {
  stateOf = view.stateOf;
  for (const element of items()) mark(element);
}

const items = () => [...at("tree").querySelectorAll("[role=treeitem]")];
const visible = () => items().filter((each) => !each.parentElement.closest("[aria-expanded=false]"));
const isOpen = (element) => element.getAttribute("aria-expanded") === "true";
const isInner = (element) => element.hasAttribute("aria-expanded");
const above = (element) => element.parentElement.closest("[role=treeitem]");

function open(element, value) {
  if (!isInner(element)) return;
  if (value && element.children.length === 1) {
    const level = Number(element.getAttribute("aria-level")) + 1;
    const group = make("ul", {}, ...tree.nodes.get(element.dataset.label).children.map((each) => item(each, level)));
    group.setAttribute("role", "group");
    element.append(group);
  }
  element.setAttribute("aria-expanded", String(value));
  if (!value && element.contains(document.activeElement)) focus(element);
}

// One item can be reached by Tab: the last one that had the focus.
function moveStop(element) {
  for (const each of at("tree").querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
  if (element) element.tabIndex = 0;
}

function focus(element) {
  if (!element) return;
  moveStop(element);
  element.focus();
}

function step(element, by) {
  const shown = visible();
  focus(shown[shown.indexOf(element) + by]);
}

const MOVES = {
  ArrowDown: (element) => step(element, 1),
  ArrowUp: (element) => step(element, -1),
  ArrowRight: (element) => (isInner(element) && !isOpen(element) ? open(element, true) : isInner(element) && step(element, 1)),
  ArrowLeft: (element) => (isOpen(element) ? open(element, false) : focus(above(element))),
  Home: () => focus(visible()[0]),
  End: () => focus(visible().at(-1)),
};

// `turn(label)` moves a label on: accepted, rejected, undecided.
export function listenToTree(turn) {
  const list = at("tree");
  list.addEventListener("keydown", (event) => {
    const element = event.target.closest("[role=treeitem]");
    if (!element || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTurn = event.key === "Enter" || event.key === " ";
    if (!isTurn && !(event.key in MOVES)) return;
    event.preventDefault();
    if (!isTurn) MOVES[event.key](element);
    else if (!event.repeat) turn(element.dataset.label);
  });
  list.addEventListener("click", (event) => {
    const element = event.target.closest("[role=treeitem]");
    if (!element) return;
    moveStop(element);
    if (event.target.closest(".twist") && isInner(element)) open(element, !isOpen(element));
    else if (event.target.closest(".row")) turn(element.dataset.label);
  });
}
