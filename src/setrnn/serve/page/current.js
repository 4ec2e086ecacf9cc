// The current document: its predictions, its decisions, and how they are drawn.

import { drop, isStale } from "./api.js";
import { ready, refresh } from "./choosers.js";
import { desk, notePast, PASTED } from "./desk.js";
import { drawFrame, MAX_SHOWN, showText } from "./document.js";
import { at, percent, say } from "./elements.js";
import { drawOrders, drawResults, showAll } from "./results.js";
import * as tagging from "./tagging.js";
import { drawTree } from "./tree.js";
import { attempt, clearTrouble } from "./trouble.js";
import { explainShown, lookAt, stopExplaining } from "./words.js";

const WAIT = 120; // ms between a decision and the request that follows

let pointed = null; // the label or set under the pointer, see lookAt
let timer = 0;

// Show another document, and predict its labels.
export async function show(position, document, decision) {
  leave();
  desk.current = {
    position,
    document,
    decision,
    prediction: null,
    completion: null, // p(... given the decisions); null without decisions
    explanations: new Map(), // see words.js
    notes: [], // sentences about the predictions
  };
  showText(document.text);
  showAll(false);
  at("text-form").hidden = true;
  at("reading").hidden = false;
  at("welcome").hidden = true;
  say(at("features"), document.features.length ? `Features: ${document.features.join(", ")}` : "");
  say(at("cut"), "");
  drawFrame();
  scrollToStart(at("document"));
  await ask();
}

// Scroll to the start of a document, always if its labels are below it.
function scrollToStart(element) {
  const { top, bottom } = element.getBoundingClientRect();
  const isAbove = at("labels").getBoundingClientRect().top >= bottom;
  if (isAbove || top < 0 || top > innerHeight / 2) element.scrollIntoView({ block: "start" });
}

export function focusResults() {
  const place = at("suggestion").querySelector("button") ?? at("done");
  place.focus({ preventScroll: true });
}

// Close the document, and abort the requests about it.
export function leave() {
  for (const kind of ["tag", "known", "complete", "predicted"]) drop(kind);
  stopExplaining();
  clearTimeout(timer);
  clearTrouble();
  desk.current = null;
  pointed = null;
  lookAt(null);
  drawOrders(null);
  at("results").hidden = true;
  at("search").value = "";
}

// Predict again: the model, the rule or the document has changed.
export async function ask() {
  const asked = desk.current;
  await attempt(async () => {
    await ready();
    try {
      await predict(asked);
    } catch (error) {
      if (!(error instanceof tagging.ReplacedError)) throw error;
      await askAnother(asked);
    }
  });
}

async function predict(asked, before = []) {
  const { document, decision } = asked;
  asked.explanations = new Map();
  say(at("cut"), tagging.cutHint(document, MAX_SHOWN));
  const [prediction, rest] = await Promise.all([
    tagging.predict(document),
    restOf(document, decision, "known"),
  ]);
  if (asked !== desk.current) return;
  asked.prediction = prediction;
  if (asked.decision === decision) take(asked, rest, before);
  at("results").hidden = false;
  answered();
}

async function askAnother(asked) {
  await refresh();
  if (asked === desk.current) await predict(asked, ["The model was replaced: this is the prediction of the new one."]);
}

// Complete the labels given the decisions; if the model cannot, the decisions stay.
async function restOf(document, decision, kind) {
  try {
    return { completion: await tagging.complete(document, decision, kind), notes: [] };
  } catch (error) {
    if (error.status !== 422) throw error;
    const note = `This prediction ignores your decisions. ${error.message}`;
    return { completion: null, notes: [note] };
  }
}

function take(asked, { completion, notes }, before = []) {
  asked.completion = completion;
  asked.notes = [...before, ...notes];
}

// Complete the labels when the person pauses.
function completeSoon() {
  clearTimeout(timer);
  drop("complete");
  stopExplaining();
  at("results").setAttribute("aria-busy", "true");
  timer = setTimeout(() => attempt(() => complete(desk.current)), WAIT);
}

async function complete(asked) {
  try {
    take(asked, await restOf(asked.document, asked.decision, "complete"));
  } catch (error) {
    if (!isStale(error)) at("results").removeAttribute("aria-busy");
    if (error instanceof tagging.ReplacedError) return askAnother(asked);
    throw error;
  }
  if (asked === desk.current) answered();
  return undefined;
}

function answered() {
  at("results").removeAttribute("aria-busy");
  explainShown();
  draw();
  announce();
}

export function draw() {
  const view = tagging.viewOf(desk.current);
  drawResults(view);
  drawTree(view);
  at("orders-hint").textContent = tagging.ordersHint(desk.current.decision);
  drawFrame();
  highlightWords();
}

function announce() {
  const { labels, probability, confidence, suggestion } = tagging.viewOf(desk.current);
  const parts = [`Labels: ${labels.join(", ") || "none"}.`];
  if (probability !== null) parts.push(`Probability ${percent(probability)}, ${confidence.text}.`);
  if (suggestion) parts.push(`Next: ${suggestion.label}, ${percent(suggestion.probability)}.`);
  at("status").textContent = parts.join(" ");
}

// Highlight the words of the label under the pointer, with the focus, or suggested.
export function highlightWords() {
  const focused = at("results").contains(document.activeElement) && lookedAt(document.activeElement);
  const suggested = suggestion();
  lookAt(pointed ?? (focused || (suggested && { label: suggested.label })));
}

export function point(element) {
  pointed = element && lookedAt(element);
  highlightWords();
}

// The label or set that an element represents.
function lookedAt(element) {
  const { label, labels } = element.closest("[data-label], [data-labels]")?.dataset ?? {};
  if (label !== undefined) return { label };
  return labels === undefined ? null : { labels: JSON.parse(labels) };
}

const suggestion = () =>
  desk.current?.prediction ? tagging.viewOf(desk.current).suggestion : null;

export function change(decision) {
  notePast({ position: desk.current.position, decision: desk.current.decision });
  keep(decision);
}

function keep(decision) {
  const { current, queue, store } = desk;
  decision.guess = current.decision.guess;
  current.decision = decision;
  if (current.position !== PASTED) queue.decisions[current.position] = decision;
  desk.isAtRisk = true;
  store.put("decisions", current.position, decision);
  if (current.prediction) draw();
  else drawFrame();
}

export function decide(label, state) {
  change(tagging.decide(desk.current.decision, label, state));
  completeSoon();
}

// Each click moves on: accepted, rejected, undecided.
export function turn(label) {
  const next = { open: "accepted", accepted: "rejected", rejected: "open" };
  decide(label, next[tagging.stateOf(desk.current.decision, label)]);
}

export function reject(label) {
  const isRejected = tagging.stateOf(desk.current.decision, label) === "rejected";
  decide(label, isRejected ? "open" : "rejected");
}

// Accept a whole set, and reject the other labels that were shown.
export function takeOther(labels) {
  const { decision } = desk.current;
  const shown = [...decision.absent, ...tagging.viewOf(desk.current).labels];
  const absent = [...new Set(shown)].filter((label) => !labels.includes(label));
  change({ ...decision, present: labels, absent, status: "open", labels: null });
  completeSoon();
}

export function answer(state) {
  const suggested = suggestion();
  if (suggested) decide(suggested.label, state);
}

// Take the set shown.
export function takeShown() {
  const { labels } = tagging.viewOf(desk.current);
  change({ ...desk.current.decision, present: labels, status: "done", labels, isReviewed: true });
  if (desk.current.position === PASTED) completeSoon();
}

// Restore an earlier decision.
export function restore(decision) {
  keep(decision);
  completeSoon();
}
