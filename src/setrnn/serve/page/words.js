// The words behind a label or a set. Each set is explained once, when it is needed.

import { drop, isStale } from "./api.js";
import { desk } from "./desk.js";
import { highlight } from "./document.js";
import { at, named, percent } from "./elements.js";
import { drawOrders } from "./results.js";
import * as tagging from "./tagging.js";

const PAUSE = 150; // ms on a label before its set is explained
const PREDICTED = ""; // the key of the prediction without decisions
const ASKED = "asked";
const N_NAMED = 5; // words in the sentence below the text
const N_AGAINST = 2; // those that speak against a label
const MIN_WEIGHT = 0.02; // of the attention, for a word in that sentence
const MIN_SHARE = 0.1; // of the strongest word for a label, for a word in that sentence

let looked = null; // {label} or {labels}
let lit = null; // the label whose words are highlighted
let timer = 0;

const keyOf = (labels) => JSON.stringify([...labels].sort());
const shownSet = () => tagging.viewOf(desk.current).labels.filter((label) => !tagging.isNew(label));
const found = (key) => {
  const explanation = desk.current.explanations.get(key);
  return explanation?.steps ? explanation : null;
};

// Explain the prediction, then the set shown if it is another one.
export async function explainShown() {
  const { current } = desk;
  if (!tagging.server.model.can_explain) return drawOrders(null);
  for (const [key, value] of current.explanations) {
    if (value instanceof Error) current.explanations.delete(key); // try again
  }
  await explain(PREDICTED, null, "predicted");
  if (current === desk.current) await explain(keyOf(shownSet()), shownSet(), "shown");
}

// Explanations that are no longer needed must not delay others.
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
  const predicted = found(PREDICTED);
  drawOrders(predicted?.sequences.length ? predicted : null, found(keyOf(shownSet())));
  lookAt(looked);
}

// Highlight the words of a label, {label}, or of a set, {labels}; null for none.
export function lookAt(look) {
  clearTimeout(timer);
  looked = look;
  if (look === null || !desk.current?.prediction) return show(null);
  const { model } = tagging.server;
  if (!model.can_explain) {
    return show(null, [`A ${model.method} model cannot show which words speak for a label.`]);
  }
  if (look.label !== undefined && tagging.isNew(look.label)) {
    return show(null, [...quoted(look.label), " is new to the model: it has no words to show."]);
  }
  const known = evidenceFor(look.label);
  if (known) return showEvidence(look.label, known);
  const labels = look.labels ?? [...new Set([...shownSet(), look.label])];
  const key = keyOf(labels);
  const explanation = desk.current.explanations.get(key);
  if (explanation instanceof Error) return show(null, [`There are no words to show. ${explanation.message}`]);
  if (explanation?.steps) return showWords(look, explanation);
  if (lit !== look.label) show(null); // the same label keeps its words until there are new ones
  const isComing = [key, PREDICTED].some((each) => desk.current.explanations.get(each) === ASKED);
  const isChanging = at("results").hasAttribute("aria-busy"); // another set is about to be shown
  if (isComing || isChanging) return;
  timer = setTimeout(() => explain(key, labels, "looked"), PAUSE);
}

function show(label, note = [], words = []) {
  lit = label;
  highlight(words, note);
}

// The words for a label and against it do not depend on the set that is explained. In a chain of
// classifiers, labels of the set have weights as well: the set that is shown comes first.
function evidenceFor(label) {
  const answers = [found(keyOf(shownSet())), ...desk.current.explanations.values()];
  const all = answers.flatMap((explanation) => explanation?.label_words ?? []);
  return all.find((each) => each.label === label);
}

function showEvidence(label, { words, score }) {
  const all = score ? score.terms.map(asWord) : words;
  const against = all.map((word) => ({ ...word, weight: -word.weight }));
  const [speaking, opposing] = [strongest(all), strongest(against).slice(0, N_AGAINST)];
  const most = Math.max(...[...speaking, ...opposing].map(([, weight]) => weight), 0);
  const names = (list) =>
    list
      .filter(([, weight]) => weight > 0 && weight >= MIN_SHARE * most)
      .flatMap(([word], rank) => [rank ? ", " : "", named(word)]);
  const [these, those] = [names(speaking), names(opposing)];
  const note = [
    ...quoted(label),
    ": ",
    ...(these.length ? these : ["no words speak for it"]),
    ...(those.length ? ["; against it: ", ...those] : []),
    ".",
  ];
  show(label, note, words);
}

const asWord = ({ text, kind, contribution }) => ({
  text: kind === "label" ? `${text} (label)` : text,
  weight: contribution,
});

function showWords({ label, labels }, { steps, label_words }) {
  if (labels && label_words.length) {
    const words = sumOf(label_words.filter((each) => each.is_in_set));
    const list = strongest(words).flatMap(([word], rank) => [rank ? ", " : "", named(word)]);
    return show(null, words.length ? ["For the labels of this set: ", ...list, "."] : [], words);
  }
  if (labels) {
    const words = meanOf(steps.filter((step) => step.label !== null)); // without STOP
    return show(null, sentence(["The labels of this set attend to "], words), words);
  }
  const { words } = steps.find((step) => step.label === label);
  const isIn = shownSet().includes(label);
  const beginning = [...quoted(label), isIn ? " attended to " : " would attend to "];
  return show(label, sentence(beginning, words), words);
}

const quoted = (label) => ["“", named(label), "”"];

const meanOf = (steps) => addUp(steps.map(({ words }) => [words, steps.length]));

// Each label has the same part in the sum, whatever its weights are.
function sumOf(labels) {
  const speaking = labels.map(({ words }) => words.filter(({ weight }) => weight > 0));
  return addUp(speaking.map((words) => [words, Math.max(...words.map(({ weight }) => weight))]));
}

// Add up the weights of words, each list divided by a number.
function addUp(lists) {
  const sums = new Map();
  for (const [words, divisor] of lists) {
    for (const word of words) {
      const before = sums.get(word.start)?.weight ?? 0;
      sums.set(word.start, { ...word, weight: before + word.weight / divisor });
    }
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

// The words with the most weight, summed over repetitions.
function strongest(words) {
  const sums = new Map();
  for (const { text, weight } of words) {
    const [name, before] = sums.get(text.toLowerCase()) ?? [text, 0];
    sums.set(text.toLowerCase(), [name, before + weight]);
  }
  const sorted = [...sums.values()].sort(([, a], [, b]) => b - a).slice(0, N_NAMED);
  return sorted.filter(([, weight], rank) => rank === 0 || weight >= MIN_WEIGHT);
}
