// The document as it is read: its text, and words of it lit up.

import { at, make } from "./elements.js";

const FAINTEST = 0.04; // of the strongest word: less is not shown

export const MOST_SHOWN = 200_000; // characters: browsers need long to break more into lines

let text = ""; // what is shown
let spans = new Map(); // where a word starts -> its element

export function showText(value) {
  text = value.slice(0, MOST_SHOWN);
  spans = new Map();
  at("reading").replaceChildren(text || make("em", { textContent: "This document is empty." }));
  at("reading").scrollTop = 0;
}

// Light up words by their weights; `said` stands below the text.
export function light(words, said = []) {
  wrap(words.filter((word) => text.slice(word.start, word.stop) === word.text));
  const most = words.reduce((a, word) => Math.max(a, word.weight), 0);
  for (const span of spans.values()) span.classList.remove("is-lit");
  for (const word of words) {
    const share = word.weight / most;
    const span = spans.get(word.start);
    if (span === undefined || !(share >= FAINTEST)) continue;
    span.classList.add("is-lit");
    span.style.setProperty("--heat-share", share.toFixed(3));
  }
  at("attention").replaceChildren(...said);
}

// Give each word an element once: lighting up is then a matter of style.
function wrap(words) {
  const fresh = words.filter((word) => !spans.has(word.start));
  if (!fresh.length) return;
  for (const { start, text: word } of fresh) {
    spans.set(start, make("span", { className: "word", textContent: word }));
  }
  const pieces = [];
  let end = 0;
  for (const [start, span] of [...spans].sort(([a], [b]) => a - b)) {
    if (start < end) continue;
    pieces.push(text.slice(end, start), span);
    end = start + span.textContent.length;
  }
  at("reading").replaceChildren(...pieces, text.slice(end));
}
