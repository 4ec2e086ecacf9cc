// Actions on a queue: open, step through, sort, export, clear.

import { ready, refresh } from "./choosers.js";
import { change, focusResults, leave, show } from "./current.js";
import { desk } from "./desk.js";
import { drawFrame } from "./document.js";
import { at, confirmed, count, number, saveFile, say } from "./elements.js";
import { edit, mayGo } from "./pasted.js";
import * as queues from "./queue.js";
import { readRows } from "./rows.js";
import { guess, ReplacedError, server } from "./tagging.js";

const N_NAMED = 5; // skipped rows that are listed per reason

let passes = 0; // over the queue, to predict all documents: a newer one ends the older

export async function openQueue(name, content) {
  const { documents, left, unit } = readRows(name, content);
  if (!documents.length) {
    throw new Error(`${name} has no readable document. ${leftOut(left, unit)}`);
  }
  const mayOpen = desk.queue
    ? await confirmed(`Replace the queue? ${lossOf()}`, "Replace")
    : await mayGo("Open the queue?", "Open");
  if (!mayOpen) return;
  stopPredicting();
  desk.queue = null;
  edit("");
  at("document-title").textContent = `Opening ${name} …`;
  desk.queue = await queues.startQueue(desk.store, name, documents);
  say(at("queue-hint"), leftOut(left, unit));
  at("text").blur();
  await move(0);
}

// List the skipped rows: "3 lines skipped. Lines 4, 7, 9: not a JSON object on one line."
function leftOut(left, unit) {
  const n = [...left.values()].reduce((sum, numbers) => sum + numbers.length, 0);
  if (!n) return "";
  const groups = [...left].map(([why, numbers]) => `${named(numbers, unit)}: ${why}.`);
  return `${count(n, unit)} skipped. ${groups.join(" ")}`;
}

function named(numbers, unit) {
  const word = `${unit[0].toUpperCase()}${unit.slice(1)}${numbers.length === 1 ? "" : "s"}`;
  const more = numbers.length > N_NAMED ? ` and ${number(numbers.length - N_NAMED)} more` : "";
  return `${word} ${numbers.slice(0, N_NAMED).join(", ")}${more}`;
}

// Restore the queue from before a reload; return whether there was one.
export async function resume() {
  desk.queue = await queues.loadQueue(desk.store);
  if (desk.queue) await go(desk.queue.place);
  return desk.queue !== null;
}

async function go(place) {
  const { queue, store } = desk;
  leave(); // keys must not reach the old document
  queue.place = place;
  await queues.saveQueue(store, queue);
  const position = queue.order[place];
  await show(position, await store.get("documents", position), queue.decisions[position]);
}

// Go to a place, and move the focus there.
async function move(place) {
  await go(place);
  if (document.activeElement === document.body) focusResults();
}

export async function step(by) {
  const place = (desk.queue?.place ?? 0) + by;
  if (desk.queue && place >= 0 && place < desk.queue.n) await move(place);
}

export async function goOn() {
  const place = queues.nextOpen(desk.queue);
  if (place !== null) return move(place);
  const text = "All documents are done or skipped. Export your decisions.";
  say(at("queue-hint"), text);
  at("status").textContent = text;
  return undefined;
}

// Reopen a document with its earlier decisions.
export async function goBack({ position, decision }) {
  const { queue, store } = desk;
  const { guess } = queue.decisions[position];
  queue.decisions[position] = { ...decision, guess };
  desk.isAtRisk = true;
  store.put("decisions", position, queue.decisions[position]);
  await move(queue.order.indexOf(position));
}

export async function skip() {
  if (!desk.queue || !desk.current) return;
  const { decision } = desk.current;
  if (decision.status === "open") change({ ...decision, status: "skipped" });
  await goOn();
}

export function stopPredicting() {
  passes += 1;
  say(at("queue-hint"), "");
}

// Sort the queue; the current document stays, as the person may be about to decide.
export async function reorder(orderBy) {
  stopPredicting();
  const { queue } = desk;
  if (orderBy !== "file" && !(await predictAll())) return;
  queue.orderBy = orderBy;
  const position = queue.order[queue.place];
  queue.order = queues.orderOf(queue, orderBy, position);
  queue.place = queue.order.indexOf(position);
  say(at("queue-hint"), orderHint(queue));
  at("status").textContent = "Sorted: the other documents follow this one.";
  if (desk.current) drawFrame();
  await queues.saveQueue(desk.store, queue);
}

// Predict all documents; return whether that was completed.
async function predictAll() {
  const mine = passes;
  const isOver = () => mine !== passes;
  const progress = (n, all) =>
    say(at("queue-hint"), `Predicting all documents: ${number(n)} of ${number(all)} …`);
  await ready();
  const by = [server.model.name, server.model.version, server.rule].join(" ");
  const maxTexts = server.limits.max_texts;
  try {
    const reading = { by, maxTexts, tag: guessPatiently, isOver, progress };
    await queues.guessAll(desk.store, desk.queue, reading);
  } catch (error) {
    if (error instanceof ReplacedError) {
      await refresh();
      return !isOver() && predictAll();
    }
    stopPredicting();
    at("order").value = desk.queue.orderBy;
    throw error;
  }
  return !isOver();
}

// Ask a busy server again; a document that it refuses has to be reviewed.
async function guessPatiently(documents) {
  try {
    return await guess(documents);
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

function orderHint({ orderBy, decisions, n }) {
  if (orderBy === "file") return "";
  const known = decisions.filter((each) => each.guess?.accepted != null);
  if (!known.length) return "This model has no acceptance threshold for this rule: sorted by probability.";
  const nAccepted = known.filter((each) => each.guess.accepted).length;
  return `The model accepts ${number(nAccepted)} of ${count(n, "document")}.`;
}

export async function exportQueue() {
  const name = `${desk.queue.name.replace(/\.[^.]*$/, "")}-tagged.jsonl`;
  saveFile(name, await queues.exported(desk.store, desk.queue));
  desk.isAtRisk = false;
}

export async function clear() {
  if (!(await confirmed(`Clear the queue? ${lossOf()}`, "Clear the queue"))) return;
  stopPredicting();
  desk.queue = null;
  await queues.clearQueue(desk.store);
  edit("");
}

function lossOf() {
  const { queue } = desk;
  const nDone = queues.countOf(queue, "done");
  const lost = `Your decisions about ${count(nDone, "document")} are lost unless you exported them.`;
  return `${queue.name}, ${count(queue.n, "document")}. ${nDone ? lost : ""}`;
}
