// The documents of one file: their order, the current place, and the decisions.

const BATCH = 16; // texts per request, if the server allows as many
const BATCH_CHARACTERS = 60_000;

export const undecided = (labels = []) => ({
  present: [...labels],
  absent: [],
  status: "open", // or "done", "skipped"
  labels: null, // the final set, when done
  isReviewed: true, // false: done because the model accepts the set
  guess: null, // {labels, accepted, probability, by}: the prediction of the model `by`
});

// Store a new queue in place of the old one.
export async function startQueue(store, name, documents, table) {
  const decisions = documents.map((each) => undecided(each.labels));
  const queue = { name, n: documents.length, orderBy: "file", order: null, place: 0, table };
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

export const saveQueue = (store, { name, n, orderBy, order, place, table }) =>
  store.put("settings", "queue", {
    name,
    n,
    orderBy,
    order: orderBy === "file" ? null : order,
    place,
    table, // its columns, if the file is one: see rows.js
  });

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
  const waiting = inFile(queue.n).filter((position) => !isGuessed(queue.decisions[position], by));
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
    positions.forEach((position, i) => { queue.decisions[position].guess = { ...guesses[i], by }; });
    await keepDecisions(store, queue, positions);
    progress(n, waiting.length);
  }
}

const isGuessed = ({ guess }, by) => guess?.by === by && guess.labels !== undefined;

export const keepDecisions = (store, queue, positions) =>
  store.putAll("decisions", positions.map((position) => [position, queue.decisions[position]]));

const isUntouched = ({ status, present, absent }) =>
  status === "open" && !present.length && !absent.length;

// Take the sets that the model `by` accepts, of documents that nobody has decided about; return the
// positions of these documents.
export async function acceptSettled(store, queue, by) {
  const isSettled = (each) => isUntouched(each) && isGuessed(each, by) && each.guess.accepted;
  const positions = inFile(queue.n).filter((position) => isSettled(queue.decisions[position]));
  for (const position of positions) {
    const { guess } = queue.decisions[position];
    const labels = [...guess.labels];
    queue.decisions[position] = { ...undecided(labels), status: "done", labels, isReviewed: false, guess };
  }
  await keepDecisions(store, queue, positions);
  return positions;
}

// Open documents again that were accepted together.
export async function reopen(store, queue, positions) {
  for (const position of positions) {
    const { guess } = queue.decisions[position];
    queue.decisions[position] = { ...undecided(), guess };
  }
  await keepDecisions(store, queue, positions);
}

// Count the labels of all documents: label -> in how many it is.
export function labelCounts(queue) {
  const counts = new Map();
  for (const { labels, present } of queue.decisions) {
    for (const label of labels ?? present) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  return counts;
}

// Return the documents that are done, in the order of the file: {document, labels, isReviewed}.
export async function decided(store, queue) {
  const found = [];
  for (let from = 0; from < queue.n; from += 1000) {
    const to = Math.min(from + 1000, queue.n) - 1;
    const documents = await store.range("documents", from, to);
    documents.forEach((document, i) => {
      const { status, labels, isReviewed = true } = queue.decisions[from + i];
      if (status === "done") found.push({ document, labels, isReviewed });
    });
  }
  return found;
}
