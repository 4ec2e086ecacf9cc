// Actions on a queue: open, step through, sort, accept what is settled, export, clear.

import { ready, refresh } from "./choosers.js";
import { change, focusResults, leave, show } from "./current.js";
import { desk, notePast } from "./desk.js";
import { drawFrame } from "./document.js";
import { at, confirmed, count, number, saveFile, say } from "./elements.js";
import { edit, mayGo } from "./pasted.js";
import * as queues from "./queue.js";
import { asLine, asTable } from "./rows.js";
import { asShare, guess, isNew, newAmong, ReplacedError, server } from "./tagging.js";

const N_NAMED = 5; // skipped lines that are listed per reason, and new labels
const N_ADDED = 20; // labels of the queue that are looked up

let passes = 0; // over the queue, to predict all documents: a newer one ends the older

// Open documents that were read: see rows.js, and table.js for `table`.
export async function openQueue(name, { documents, left, table = null }) {
  if (!documents.length) {
    throw new Error(`${name} has no readable document. ${leftOut(left)}`);
  }
  const mayOpen = desk.queue
    ? await confirmed(`Replace the queue? ${lossOf()}`, "Replace")
    : await mayGo("Open the queue?", "Open");
  if (!mayOpen) return;
  stopPredicting();
  desk.queue = null;
  edit("");
  at("document-title").textContent = `Opening ${name} …`;
  desk.queue = await queues.startQueue(desk.store, name, documents, table);
  say(at("queue-hint"), leftOut(left));
  at("text").blur();
  await move(0);
}

// List the skipped lines: "3 lines skipped. Lines 4, 7, 9: not a JSON object on one line."
export function leftOut(left) {
  const n = [...left.values()].reduce((sum, numbers) => sum + numbers.length, 0);
  if (!n) return "";
  const groups = [...left].map(([why, numbers]) => `${named(numbers)}: ${why}.`);
  return `${count(n, "line")} skipped. ${groups.join(" ")}`;
}

function named(numbers) {
  const more = numbers.length > N_NAMED ? ` and ${number(numbers.length - N_NAMED)} more` : "";
  return `Line${numbers.length === 1 ? "" : "s"} ${numbers.slice(0, N_NAMED).join(", ")}${more}`;
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
  tell("All documents are done or skipped. Export your decisions.");
  return undefined;
}

// Say it to those who see the page, and to those who hear it.
function tell(text) {
  say(at("queue-hint"), text);
  at("status").textContent = text;
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
  const maxTexts = server.limits.max_texts;
  try {
    const reading = { by: guesser(), maxTexts, tag: guessPatiently, isOver, progress };
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

const guesser = () => [server.model.name, server.model.version, server.rule].join(" ");

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
    if (documents.length === 1) return [{ labels: [], accepted: false, probability: 0 }];
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

// Take the sets that the model accepts, in all documents that nobody has decided about.
export async function acceptSettled() {
  stopPredicting();
  await ready();
  const { threshold = null, target } = server.model.accepts[server.rule] ?? {};
  if (threshold === null) {
    tell(
      `Nothing is settled: this model accepts no set by rule ${server.rule}. Run setrnn calibrate ` +
        `MODEL DATA --rule ${server.rule} --target-accuracy 0.9 to find which sets need no review.`,
    );
    return;
  }
  if (!(await predictAll())) return;
  const { queue, store } = desk;
  const positions = await queues.acceptSettled(store, queue, guesser());
  if (positions.length) {
    notePast({ positions });
    desk.isAtRisk = true;
  }
  await showAgain(positions, queues.nextOpen(queue) ?? queue.place);
  tell(
    positions.length
      ? `${count(positions.length, "document")} accepted without review: taken together, such sets are ` +
          `right in at least ${asShare(target)} of cases. Undo opens them again.`
      : "No open document is settled: review those that are left.",
  );
}

export async function reopen({ positions }) {
  await queues.reopen(desk.store, desk.queue, positions);
  desk.isAtRisk = true;
  await showAgain(positions, desk.queue.place);
  tell(`${count(positions.length, "document")} open again.`);
}

// Draw the page after decisions about many documents; go to a place if the current one is of them.
// What is said about them is at the top.
async function showAgain(positions, place) {
  if (positions.includes(desk.current?.position)) await move(place);
  else if (desk.current) drawFrame();
  if (at("queue").getBoundingClientRect().top < 0) at("queue").scrollIntoView({ block: "start" });
}

// Find labels of this queue that are new to the model: [{label, count}].
export async function findAdded(prefix) {
  if (!desk.queue) return [];
  const counts = queues.labelCounts(desk.queue);
  const found = [...counts.keys()].filter((label) => label.toLowerCase().includes(prefix.toLowerCase()));
  const added = await newAmong(found.slice(0, N_ADDED));
  return added.map((label) => ({ label, count: counts.get(label) }));
}

export async function exportQueue(format) {
  const { queue, store } = desk;
  const found = await queues.decided(store, queue);
  const { lines, separator = null, suffix } = {
    jsonl: () => ({ lines: found.map((each) => asLine(each.document, each.labels, each.isReviewed)), suffix: "jsonl" }),
    csv: () => ({ ...asTable(found, queue.table), suffix: queue.table?.delimiter === "\t" ? "tsv" : "csv" }),
  }[format]();
  const name = `${queue.name.replace(/\.[^.]*$/, "")}-tagged.${suffix}`;
  saveFile(name, lines);
  desk.isAtRisk = false;
  const how = separator === null ? "" : ` Labels are separated by “${separator}”.`;
  tell(`${count(found.length, "document")} saved as ${name}.${how}${newLabels(found)}`);
}

// "New labels: opera (2), theatre (1). A model that is trained on this file knows them."
function newLabels(found) {
  const counts = new Map();
  for (const label of found.flatMap(({ labels }) => labels).filter(isNew)) {
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  if (!counts.size) return "";
  const names = [...counts].slice(0, N_NAMED).map(([label, n]) => `${label} (${number(n)})`);
  const more = counts.size > N_NAMED ? ` and ${number(counts.size - N_NAMED)} more` : "";
  const [what, them] = counts.size === 1 ? ["New label", "it"] : ["New labels", "them"];
  return ` ${what}: ${names.join(", ")}${more}. A model that is trained on this file knows ${them}.`;
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
