// The current document: its text with highlighted words, and the buttons and counts around it.

import { canUndo, desk, PASTED } from "./desk.js";
import { at, make, number, say } from "./elements.js";
import { countOf } from "./queue.js";

const MIN_SHARE = 0.04; // of the strongest word: weaker ones are not highlighted

export const MAX_SHOWN = 200_000; // characters: breaking more into lines is slow

let text = ""; // the part that is shown
let spans = new Map(); // the start of a word -> its element

export function showText(value) {
  text = value.slice(0, MAX_SHOWN);
  spans = new Map();
  at("reading").replaceChildren(text || make("em", { textContent: "This document is empty." }));
  at("reading").scrollTop = 0;
}

// Highlight words by their weights; `note` is shown below the text.
export function highlight(words, note = []) {
  wrap(words.filter((word) => text.slice(word.start, word.stop) === word.text));
  const most = words.reduce((a, word) => Math.max(a, word.weight), 0);
  for (const span of spans.values()) span.classList.remove("is-lit");
  for (const word of words) {
    const share = word.weight / most;
    const span = spans.get(word.start);
    if (span === undefined || !(share >= MIN_SHARE)) continue;
    span.classList.add("is-lit");
    span.style.setProperty("--heat-share", share.toFixed(3));
  }
  at("attention").replaceChildren(...note);
}

// Create an element per word once: highlighting then only changes its style.
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

// Draw the buttons, badges and counts around the document and the queue.
export function drawFrame() {
  const { position, decision, document } = desk.current;
  const isQueued = position !== PASTED;
  const name = isQueued ? (document.id ?? `Document ${number(position + 1)}`) : "Document";
  at("document-title").textContent = name;
  say(at("document-status"), statusOf(decision));
  at("edit").hidden = isQueued || document.text.length > MAX_SHOWN; // too long for a text field
  at("new").hidden = isQueued;
  at("done-text").textContent = isQueued ? "Done: take this set, next" : "Done: take this set";
  at("done").disabled = decision.status === "done" && !isQueued;
  at("save").hidden = isQueued || decision.status !== "done";
  at("undo").disabled = !canUndo();
  drawQueue(desk.queue);
}

function statusOf({ status, isReviewed }) {
  if (status === "open") return "";
  return status === "done" && isReviewed === false ? "done, not reviewed" : status;
}

function drawQueue(queue) {
  at("queue").hidden = queue === null;
  if (queue === null) return;
  const nDone = countOf(queue, "done");
  const nSkipped = countOf(queue, "skipped");
  const nUnseen = queue.decisions.filter((each) => each.status === "done" && each.isReviewed === false).length;
  const unseen = nUnseen ? ` (${number(nUnseen)} not reviewed)` : "";
  const skipped = nSkipped ? `, ${number(nSkipped)} skipped` : "";
  at("queue-name").textContent = queue.name;
  at("queue-place").textContent = `${number(queue.place + 1)} of ${number(queue.n)}`;
  at("queue-done").textContent = `${number(nDone)} done${unseen}${skipped}`;
  at("queue-left").textContent = `${number(countOf(queue, "open"))} left`;
  at("queue-progress").max = queue.n;
  at("queue-progress").value = nDone;
  at("previous").disabled = queue.place === 0;
  at("next").disabled = queue.place === queue.n - 1;
  at("export").disabled = at("export-csv").disabled = nDone === 0;
  at("export").textContent = nDone ? `Export ${number(nDone)}` : "Export";
  at("order").value = queue.orderBy;
}
