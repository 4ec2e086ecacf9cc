// What went wrong, said plainly, with a way to go on.

import { hasKey, isStale, keepKey } from "./api.js";
import { at, make } from "./elements.js";

const TITLES = {
  0: "No answer.",
  401: "An API key is needed.",
  413: "This is too much for the server.",
  503: "The server is busy.",
};
let timer = 0;
let again = null;

export function clearTrouble() {
  clearInterval(timer);
  at("trouble").hidden = true;
  at("key-form").hidden = true;
}

// Run a task; where it fails say so, and offer to run it again.
export async function attempt(task) {
  clearTrouble();
  try {
    return await task();
  } catch (error) {
    if (!isStale(error)) showTrouble(error, () => attempt(task));
    return undefined;
  }
}

export function showTrouble(error, retry = null) {
  clearTrouble();
  again = retry;
  if (error.status === 401) return askForKey();
  const title = TITLES[error.status] ?? "";
  const detail = error.status === 503 ? firstSentence(error.message) : error.message;
  const parts = [make("span", { textContent: [title, detail].filter(Boolean).join(" ") })];
  const canRetry = retry !== null && (error.status === 0 || error.status >= 500);
  const [name, act] = canRetry ? ["Try again", tryAgain] : ["Close", clearTrouble];
  parts.push(make("button", { type: "button", textContent: name, on: { click: act } }));
  at("trouble").replaceChildren(...parts);
  at("trouble").hidden = false;
  if (error.status === 503 && canRetry) wait(Math.ceil(error.retryAfter ?? 2));
  return undefined;
}

// What follows it is for programs: this page waits by itself.
const firstSentence = (text) => text.split(/(?<=\.)\s/)[0];

function tryAgain() {
  clearTrouble();
  again?.();
}

function wait(seconds) {
  const left = make("span", { ariaHidden: "true" });
  at("trouble").firstChild.after(left);
  const tick = () => {
    left.textContent = ` Trying again in ${seconds} s.`;
    if (seconds <= 0) tryAgain();
    seconds -= 1;
  };
  tick();
  timer = setInterval(tick, 1000);
}

function askForKey() {
  const wanted = "The server asks for one. It is kept until this tab is closed.";
  at("key-hint").textContent = hasKey() ? "The server does not take this key." : wanted;
  at("key-form").hidden = false;
  at("key").focus();
}

at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(at("key").value);
  at("key").value = "";
  tryAgain();
});
