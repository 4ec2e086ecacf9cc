// The state that the parts of the page share, what can be undone, and small kept values.

export const PASTED = "pasted"; // the key of the document that belongs to no queue

export const desk = {
  store: null, // see store.js
  queue: null, // see queue.js
  current: null, // the current document, see current.js
  isAtRisk: false, // whether there are decisions since the last export
  isElsewhere: false, // whether another tab has taken over
};

// Small values that survive a reload, or a closed tab; in memory if the browser refuses.
const held = new Map();

export function noteOf(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return held.get(name) ?? null;
  }
}

export function keepNote(storage, name, value) {
  try {
    window[storage].setItem(name, value);
  } catch {
    held.set(name, value);
  }
}

// The decisions before each change, of any document: `u` restores them, also after a reload.
const MAX_PAST = 100;

// The last change at the end: {position, decision}, or {positions} of documents that were untouched
// before all of them were accepted.
let past = [];

export const canUndo = () => past.length > 0;

export async function loadPast() {
  past = (await desk.store.get("settings", "past")) ?? [];
}

export const forgetPast = () => keepPast([]);

export const notePast = (change) => keepPast([...past.slice(1 - MAX_PAST), change]);

// Remove and return the last change; null if there is none.
export function takeLast() {
  const last = past.at(-1) ?? null;
  if (last) keepPast(past.slice(0, -1));
  return last;
}

function keepPast(value) {
  past = value;
  desk.store.put("settings", "past", past);
}
