// The document as it is read: its text, and the words a label attended to.

import { at, make, named, percent } from "./elements.js";

const N_NAMED = 5; // attended words in the sentence below the text
const WEAKEST = 0.02; // attention that is worth a word there
const FAINTEST = 0.04; // of the strongest word: less is not shown

export const MOST_SHOWN = 200_000; // characters: browsers need long to break more into lines

let text = ""; // what is shown
let spans = new Map(); // where a word starts -> its element
let steps = new Map(); // label -> the words of its step
let whyNot = "";

export function showText(value) {
  text = value.slice(0, MOST_SHOWN);
  forget("");
  at("reading").replaceChildren(text || make("em", { textContent: "This document is empty." }));
  at("reading").scrollTop = 0;
}

// Without an explanation nothing lights up; `reason` says why.
export function forget(reason) {
  steps = new Map();
  whyNot = reason;
  light(null);
}

// Wrap each word that some step attended to, once: lighting up is then a matter of style.
export function showAttention(explanation) {
  const ofLabels = explanation.steps.filter((step) => step.label !== null); // not STOP's
  steps = new Map(ofLabels.map((step) => [step.label, step.words]));
  whyNot = "";
  const words = new Map();
  for (const word of [...steps.values()].flat()) {
    if (text.slice(word.start, word.stop) === word.text) words.set(word.start, word.stop);
  }
  spans = new Map();
  const pieces = [];
  let end = 0;
  for (const [start, stop] of [...words].sort(([a], [b]) => a - b)) {
    if (start < end) continue;
    const span = make("span", { className: "word", textContent: text.slice(start, stop) });
    spans.set(start, span);
    pieces.push(text.slice(end, start), span);
    end = stop;
  }
  if (spans.size) at("reading").replaceChildren(...pieces, text.slice(end));
}

// Light up what a label attended to; null for nothing.
export function light(label) {
  const words = steps.get(label) ?? [];
  const most = words.reduce((a, word) => Math.max(a, word.weight), 0);
  for (const span of spans.values()) span.classList.remove("is-lit");
  for (const word of words) {
    const share = word.weight / most;
    const span = spans.get(word.start);
    if (span === undefined || !(share >= FAINTEST)) continue;
    span.classList.add("is-lit");
    span.style.setProperty("--heat-share", share.toFixed(3));
  }
  at("attention").replaceChildren(...(label === null ? [] : sentence(label, words)));
}

function sentence(label, words) {
  if (whyNot || !steps.size) return [whyNot];
  const quoted = ["“", named(label), "”"];
  if (!steps.has(label)) return [...quoted, " was not predicted at first: no words to show."];
  if (!words.length) return [];
  const list = strongest(words).flatMap(([word, weight], rank) => [
    rank ? ", " : "",
    named(word),
    ` ${percent(weight)}`,
  ]);
  return [...quoted, " attended to ", ...list, "."];
}

// The words of most weight; that of a repeated word is summed.
function strongest(words) {
  const sums = new Map();
  for (const { text, weight } of words) sums.set(text, (sums.get(text) ?? 0) + weight);
  const falling = [...sums].sort(([, a], [, b]) => b - a).slice(0, N_NAMED);
  return falling.filter(([, weight], rank) => rank === 0 || weight >= WEAKEST);
}
