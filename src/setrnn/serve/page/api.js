// Calls to the server of this page. A newer call of a kind aborts the older one.

import { keepNote, noteOf } from "./desk.js";

const KEY = "setrnn-api-key";
const CAN_BE_SENT = /^[\x20-\x7e\xa0-\xff]*$/; // what a header may contain
const running = new Map();

export class Problem extends Error {
  constructor(status, detail, retryAfter = null) {
    super(detail);
    this.status = status; // 0: the server did not answer
    this.retryAfter = retryAfter; // seconds
  }
}

const key = () => noteOf("sessionStorage", KEY);
export const keepKey = (value) => keepNote("sessionStorage", KEY, value);
export const hasKey = () => key() !== null;
export const isStale = (error) => error.name === "AbortError";

// Send a request; of the calls of one `kind`, only the latest counts.
export async function ask(path, body = null, kind = null) {
  const control = new AbortController();
  if (kind !== null) {
    running.get(kind)?.abort();
    running.set(kind, control);
  }
  const answer = await send(path, body, control.signal);
  const isJSON = /\bjson\b/.test(answer.headers.get("content-type") ?? "");
  const values = isJSON ? await answer.json() : {};
  if (!answer.ok) throw problem(answer, values);
  return values;
}

export function drop(kind) {
  running.get(kind)?.abort();
  running.delete(kind);
}

async function send(path, body, signal) {
  const headers = {};
  if (body !== null) headers["Content-Type"] = "application/json";
  if (hasKey()) {
    if (!CAN_BE_SENT.test(key())) throw new Problem(401, "This is not a valid API key.");
    headers.Authorization = `Bearer ${key()}`;
  }
  const method = body === null ? "GET" : "POST";
  try {
    return await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (isStale(error)) throw error;
    throw new Problem(0, "The server does not answer. Is it running?");
  }
}

function problem(answer, values) {
  const detail = values.detail ?? values.title ?? `The server answered ${answer.status}.`;
  const seconds = Number.parseFloat(answer.headers.get("retry-after"));
  return new Problem(answer.status, detail, Number.isFinite(seconds) ? seconds : null);
}
