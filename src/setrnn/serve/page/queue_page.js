// What a person does with a queue: open it, go through it, order it, export it, clear it.

import { ready, refresh } from "./choosers.js";
import { change, focusResults, leave, show } from "./current.js";
import { desk } from "./desk.js";
import { at, confirmed, count, number, saveFile, say } from "./elements.js";
import { drawFrame } from "./frame.js";
import { edit, mayGo } from "./pasted.js";
import * as queues from "./queue.js";
import { readRows } from "./rows.js";
import { guess, ReplacedError, server } from "./tagging.js";

const N_NAMED = 5; // rows left out that are named, of each reason

let passes = 0; // over the queue, to read ahead: a newer one ends the older

export async function openQueue(name, content) {
  const { documents, left, unit } = readRows(name, content);
  if (!documents.length) {
    throw new Error(`${name} has no document that can be read. ${leftOut(left, unit)}`);
  }
  const mayOpen = desk.queue
    ? await confirmed(`Replace the queue? ${lossOf()}`, "Replace it")
    : await mayGo("Open the queue?", "Open it");
  if (!mayOpen) return;
  stopReadingAhead();
  desk.queue = null;
  edit("");
  at("document-title").textContent = `Opening ${name} …`;
  desk.queue = await queues.startQueue(desk.store, name, documents);
  say(at("queue-hint"), leftOut(left, unit));
  at("text").blur();
  await move(0);
}

// Name what was left out: "3 lines left out. Lines 4, 7, 9: not a JSON object on one line."
function leftOut(left, unit) {
  const n = [...left.values()].reduce((sum, numbers) => sum + numbers.length, 0);
  if (!n) return "";
  const groups = [...left].map(([why, numbers]) => `${named(numbers, unit)}: ${why}.`);
  return `${count(n, unit)} left out. ${groups.join(" ")}`;
}

function named(numbers, unit) {
  const word = `${unit[0].toUpperCase()}${unit.slice(1)}${numbers.length === 1 ? "" : "s"}`;
  const more = numbers.length > N_NAMED ? ` and ${number(numbers.length - N_NAMED)} more` : "";
  return `${word} ${numbers.slice(0, N_NAMED).join(", ")}${more}`;
}

// Go on with the queue that was there before a reload; tell whether there was one.
export async function resume() {
  desk.queue = await queues.loadQueue(desk.store);
  if (desk.queue) await go(desk.queue.place);
  return desk.queue !== null;
}

async function go(place) {
  const { queue, store } = desk;
  leave(); // keys must not reach the document that goes
  queue.place = place;
  await queues.saveQueue(store, queue);
  const position = queue.order[place];
  await show(position, await store.get("documents", position), queue.decisions[position]);
}

// Go there, and bring the focus along.
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
  const text = "No document is open any more. Export what you decided.";
  say(at("queue-hint"), text);
  at("status").textContent = text;
  return undefined;
}

// Open a document again, as it was decided about before.
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

export function stopReadingAhead() {
  passes += 1;
  say(at("queue-hint"), "");
}

// Order the queue anew; the document at hand stays, as the person may be about to decide.
export async function reorder(orderBy) {
  stopReadingAhead();
  const { queue } = desk;
  if (orderBy !== "file" && !(await readAhead())) return;
  queue.orderBy = orderBy;
  const position = queue.order[queue.place];
  queue.order = queues.orderOf(queue, orderBy, position);
  queue.place = queue.order.indexOf(position);
  say(at("queue-hint"), orderHint(queue));
  at("status").textContent = "Ordered: the others follow this document.";
  if (desk.current) drawFrame();
  await queues.saveQueue(desk.store, queue);
}

// Let the model read all documents; tell whether it came to the end.
async function readAhead() {
  const mine = passes;
  const isOver = () => mine !== passes;
  const progress = (n, all) =>
    say(at("queue-hint"), `The model reads ahead: ${number(n)} of ${number(all)} …`);
  await ready();
  const by = [server.model.name, server.model.version, server.rule].join(" ");
  const most = server.limits.max_texts;
  try {
    const reading = { by, most, tag: guessPatiently, isOver, progress };
    await queues.guessAll(desk.store, desk.queue, reading);
  } catch (error) {
    if (error instanceof ReplacedError) {
      await refresh();
      return !isOver() && readAhead();
    }
    stopReadingAhead();
    at("order").value = desk.queue.orderBy;
    throw error;
  }
  return !isOver();
}

// A busy server is asked again; a document it refuses goes to the ones to be reviewed.
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
  if (!known.length) return "This model has no acceptance for this rule: ordered by probability.";
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
  stopReadingAhead();
  desk.queue = null;
  await queues.clearQueue(desk.store);
  edit("");
}

function lossOf() {
  const { queue } = desk;
  const nDone = queues.countOf(queue, "done");
  const lost = `What you decided about ${count(nDone, "document")} is lost unless you exported it.`;
  return `${queue.name}, ${count(queue.n, "document")}. ${nDone ? lost : ""}`;
}
