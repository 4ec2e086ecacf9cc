// The documents of one file: their order, the current place, and the decisions.

import { asLine } from "./rows.js";

const BATCH = 16; // texts per request, if the server allows as many
const BATCH_CHARACTERS = 60_000;

export const undecided = (labels = []) => ({
  present: [...labels],
  absent: [],
  status: "open", // or "done", "skipped"
  labels: null, // the final set, when done
  guess: null, // {accepted, probability, by}: the prediction of the model `by`, for the order
});

// Store a new queue in place of the old one.
export async function startQueue(store, name, documents) {
  const decisions = documents.map((each) => undecided(each.labels));
  const queue = { name, n: documents.length, orderBy: "file", order: null, place: 0 };
  await store.replace({
    documents: [...documents.entries()],
    decisions: [...decisions.entries()],
    settings: [["queue", queue]],
  });
  return { ...queue, order: inFile(queue.n), decisions };
}

export async function loadQueue(store) {
  const queue = await store.get("settings", "queue");
  if (!queue) return null;
  const decisions = await store.range("decisions", 0, queue.n - 1);
  return { ...queue, order: queue.order ?? inFile(queue.n), decisions };
}

export const saveQueue = (store, { name, n, orderBy, order, place }) =>
  store.put("settings", "queue", { name, n, orderBy, order: orderBy === "file" ? null : order, place });

export const clearQueue = (store) => store.replace({});

const inFile = (n) => Array.from({ length: n }, (_, position) => position);

// Sort accepted documents first or last, then by probability. The current document comes before
// all others, so that the next one is the first of them.
export function orderOf(queue, orderBy, current) {
  if (orderBy === "file") return inFile(queue.n);
  const sign = orderBy === "accepted-first" ? -1 : 1;
  const sureness = ({ guess }) => (guess ? 2 * guess.accepted + guess.probability : -1);
  const keys = queue.decisions.map(sureness);
  const others = inFile(queue.n).filter((position) => position !== current);
  return [current, ...others.sort((a, b) => sign * (keys[a] - keys[b]) || a - b)];
}

export function countOf(queue, status) {
  return queue.decisions.filter((each) => each.status === status).length;
}

// Return the next place with an open document, starting again at the front; null if none is open.
export function nextOpen(queue) {
  for (let i = 1; i <= queue.n; i += 1) {
    const place = (queue.place + i) % queue.n;
    if (queue.decisions[queue.order[place]].status === "open") return place;
  }
  return null;
}

// Tag all documents without a guess of the model `by`, batch by batch.
export async function guessAll(store, queue, { by, maxTexts, tag, isOver, progress }) {
  const waiting = inFile(queue.n).filter((position) => queue.decisions[position].guess?.by !== by);
  progress(0, waiting.length);
  let n = 0;
  while (n < waiting.length && !isOver()) {
    const positions = [];
    const documents = [];
    let size = 0;
    while (n < waiting.length && positions.length < Math.min(BATCH, maxTexts)) {
      const document = await store.get("documents", waiting[n]);
      size += document.text.length;
      if (positions.length && size > BATCH_CHARACTERS) break;
      positions.push(waiting[n]);
      documents.push(document);
      n += 1;
    }
    const guesses = await tag(documents);
    if (isOver()) return;
    for (const [i, position] of positions.entries()) {
      const decision = queue.decisions[position];
      decision.guess = { ...guesses[i], by };
      await store.put("decisions", position, decision);
    }
    progress(n, waiting.length);
  }
}

// Return the finished documents in the training format, in the order of the file.
export async function exported(store, queue) {
  const lines = [];
  for (let from = 0; from < queue.n; from += 1000) {
    const to = Math.min(from + 1000, queue.n) - 1;
    const documents = await store.range("documents", from, to);
    documents.forEach((document, i) => {
      const { status, labels } = queue.decisions[from + i];
      if (status === "done") lines.push(asLine(document, labels));
    });
  }
  return lines;
}
