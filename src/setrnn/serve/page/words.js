// The words behind what is looked at. Sets are explained as they are needed, each once.

import { drop, isStale } from "./api.js";
import { desk } from "./desk.js";
import { at, named, percent } from "./elements.js";
import { light } from "./reading.js";
import { drawOrders } from "./results.js";
import * as tagging from "./tagging.js";

const PAUSE = 150; // ms that a set is looked at before it is asked about
const PREDICTED = ""; // the key of what the model predicts by itself
const ASKED = "asked";
const N_NAMED = 5; // attended words in the sentence below the text
const WEAKEST = 0.02; // attention that is worth a word there

let looked = null; // {label} or {labels}
let lit = null; // the label whose words are lit
let timer = 0;

const keyOf = (labels) => JSON.stringify([...labels].sort());
const shownSet = () => tagging.viewOf(desk.current).labels.filter((label) => !tagging.isNew(label));
const found = (key) => {
  const explanation = desk.current.explanations.get(key);
  return explanation?.steps ? explanation : null;
};

// Explain what the model predicts, then the set that is shown, unless they are the same.
export async function explainShown() {
  const { current } = desk;
  if (!tagging.server.model.can_explain) return drawOrders(null);
  for (const [key, value] of current.explanations) {
    if (value instanceof Error) current.explanations.delete(key); // another try
  }
  await explain(PREDICTED, null, "predicted");
  if (current === desk.current) await explain(keyOf(shownSet()), shownSet(), "shown");
}

// What is no longer needed must not keep the server from what is.
export function stopExplaining() {
  clearTimeout(timer);
  for (const kind of ["shown", "looked"]) drop(kind);
}

async function explain(key, labels, kind) {
  const { document, explanations } = desk.current;
  if (!explanations.has(key)) {
    explanations.set(key, ASKED);
    try {
      const explanation = await tagging.explain(document, labels, kind);
      explanations.set(key, explanation);
      explanations.set(keyOf(explanation.sets[0].labels), explanation);
    } catch (error) {
      explanations.delete(key);
      if (isStale(error)) return;
      explanations.set(key, error);
      if (error.status === 503) setTimeout(again, 1000 * (error.retryAfter ?? 2), explanations);
    }
  }
  if (desk.current?.explanations === explanations) draw();
}

function again(explanations) {
  if (desk.current?.explanations === explanations) explainShown();
}

function draw() {
  drawOrders(found(PREDICTED), found(keyOf(shownSet())));
  lookAt(looked);
}

// Light up the words of a label, {label}, or of a set, {labels}; null for nothing.
export function lookAt(look) {
  clearTimeout(timer);
  looked = look;
  if (look === null || !desk.current?.prediction) return show(null);
  const { model } = tagging.server;
  if (!model.can_explain) {
    return show(null, [`A ${model.method} model does not tell which words it looked at.`]);
  }
  if (look.label !== undefined && tagging.isNew(look.label)) {
    return show(null, [...quoted(look.label), " is new to the model: no words to show."]);
  }
  const labels = look.labels ?? [...new Set([...shownSet(), look.label])];
  const key = keyOf(labels);
  const explanation = desk.current.explanations.get(key);
  if (explanation instanceof Error) return show(null, [`No words to show. ${explanation.message}`]);
  if (explanation?.steps) return showWords(look, explanation);
  if (lit !== look.label) show(null); // the same label keeps its words until it has new ones
  const isComing = [key, PREDICTED].some((each) => desk.current.explanations.get(each) === ASKED);
  const isChanging = at("results").hasAttribute("aria-busy"); // there will be another set
  if (isComing || isChanging) return;
  timer = setTimeout(() => explain(key, labels, "looked"), PAUSE);
}

function show(label, said = [], words = []) {
  lit = label;
  light(words, said);
}

function showWords({ label, labels }, { steps }) {
  if (labels) {
    const words = meanOf(steps.filter((step) => step.label !== null)); // not STOP's
    return show(null, sentence(["The labels of this set attend to "], words), words);
  }
  const { words } = steps.find((step) => step.label === label);
  const isIn = shownSet().includes(label);
  const beginning = [...quoted(label), isIn ? " attended to " : " would attend to "];
  return show(label, sentence(beginning, words), words);
}

const quoted = (label) => ["“", named(label), "”"];

function meanOf(steps) {
  const sums = new Map();
  for (const word of steps.flatMap((step) => step.words)) {
    const before = sums.get(word.start)?.weight ?? 0;
    sums.set(word.start, { ...word, weight: before + word.weight / steps.length });
  }
  return [...sums.values()];
}

function sentence(beginning, words) {
  if (!words.length) return [];
  const list = strongest(words).flatMap(([word, weight], rank) => [
    rank ? ", " : "",
    named(word),
    ` ${percent(weight)}`,
  ]);
  return [...beginning, ...list, "."];
}

// The words of most weight; that of a repeated word is summed.
function strongest(words) {
  const sums = new Map();
  for (const { text, weight } of words) {
    const [name, before] = sums.get(text.toLowerCase()) ?? [text, 0];
    sums.set(text.toLowerCase(), [name, before + weight]);
  }
  const falling = [...sums.values()].sort(([, a], [, b]) => b - a).slice(0, N_NAMED);
  return falling.filter(([, weight], rank) => rank === 0 || weight >= WEAKEST);
}
