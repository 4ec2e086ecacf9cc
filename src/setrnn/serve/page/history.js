// What was decided before each change, of whichever document: `u` goes back, also after a reload.

import { desk } from "./desk.js";

const MOST = 100; // changes that can be undone

let past = []; // {position, decision}, the last change at the end

export const canUndo = () => past.length > 0;

export async function loadPast() {
  past = (await desk.store.get("settings", "past")) ?? [];
}

export const forgetPast = () => keep([]);

export const notePast = (position, decision) =>
  keep([...past.slice(1 - MOST), { position, decision }]);

// Take the last change off; null where there is none.
export function takeLast() {
  const last = past.at(-1) ?? null;
  if (last) keep(past.slice(0, -1));
  return last;
}

function keep(value) {
  past = value;
  desk.store.put("settings", "past", past);
}
