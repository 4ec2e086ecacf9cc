// Messages about failures, and what the person can do: failed calls, and failed storage.

import { hasKey, isStale, keepKey } from "./api.js";
import { desk } from "./desk.js";
import { at, make } from "./elements.js";
import { openStore } from "./store.js";

const TITLES = {
  0: "No answer.",
  401: "An API key is required.",
  413: "This is too large for the server.",
  503: "The server is busy.",
};
let timer = 0;
let again = null;

export function clearTrouble() {
  clearInterval(timer);
  at("trouble").hidden = true;
  at("key-form").hidden = true;
}

// Run a task; if it fails, show the reason and offer to run it again.
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

// The rest of the message is for programs: this page waits by itself.
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
  const hint = "The server requires a key. It is kept until this tab is closed.";
  at("key-hint").textContent = hasKey() ? "The server does not accept this key." : hint;
  at("key-form").hidden = false;
  at("key").focus();
}

at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(at("key").value);
  at("key").value = "";
  tryAgain();
});

// Storage: messages if nothing can be stored, and if another tab has taken over.
const OF_THE_QUEUE = ["previous", "next", "skip", "order", "accept-settled", "clear"];
const EXPORTS = ["export", "export-csv"];

export async function openDesk() {
  desk.store = await openStore({ lost: sayLost, elsewhere: stop });
  addEventListener("beforeunload", (event) => {
    if (desk.isAtRisk && !desk.store.isKept()) event.preventDefault();
  });
}

function notice(text, ...button) {
  const parts = [make("span", { textContent: text })];
  if (button.length) {
    const [name, act] = button;
    parts.push(make("button", { type: "button", textContent: name, on: { click: act } }));
  }
  at("keeping").replaceChildren(...parts);
  at("keeping").hidden = false;
}

function sayLost(error) {
  if (error === null) {
    notice(
      "This browser stores nothing for this page (a private window?). Your decisions are lost when " +
        "you reload or close it: export them first.",
    );
    return;
  }
  const why = error?.name === "QuotaExceededError" ? "no space left" : error?.message;
  notice(
    `This browser could not store your last change${why ? ` (${why})` : ""}. It is lost when you ` +
      "reload or close the page: export your decisions first.",
    "Try again",
    keepAgain,
  );
}

async function keepAgain() {
  at("keeping").hidden = true;
  await desk.store.keepAgain(); // shows the message again if it fails
}

// Leave the documents to another tab: this page can still be read.
function stop() {
  desk.isElsewhere = true;
  const ids = desk.store.isKept() ? [...OF_THE_QUEUE, ...EXPORTS] : OF_THE_QUEUE;
  for (const element of [document.querySelector("main"), ...ids.map(at)]) element.inert = true;
  notice(
    "You continued in another tab. This one has stopped, so that neither overwrites the other.",
    "Work here",
    () => location.reload(),
  );
}
