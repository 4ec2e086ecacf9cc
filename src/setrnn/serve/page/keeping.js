// What is said of keeping: where nothing is kept, and where another tab has taken over.

import { desk } from "./desk.js";
import { at, make } from "./elements.js";
import { openStore } from "./store.js";

const OF_THE_QUEUE = ["previous", "next", "skip", "order", "clear"];

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
      "This browser keeps nothing for this page (a private window?). What you decide is gone " +
        "when you reload or close it: export what is done before.",
    );
    return;
  }
  const why = error?.name === "QuotaExceededError" ? "it has no room left" : error?.message;
  notice(
    `This browser could not keep what you did last${why ? ` (${why})` : ""}. It is here until you ` +
      "reload or close the page: export what is done before.",
    "Try again",
    tryAgain,
  );
}

async function tryAgain() {
  at("keeping").hidden = true;
  await desk.store.keepAgain(); // says so where it fails again
}

// Leave the documents to another tab: the page can still be read.
function stop() {
  desk.isElsewhere = true;
  const ids = desk.store.isKept() ? [...OF_THE_QUEUE, "export"] : OF_THE_QUEUE;
  for (const element of [document.querySelector("main"), ...ids.map(at)]) element.inert = true;
  notice(
    "You went on in another tab. This one has stopped, so that neither overwrites the other.",
    "Work here",
    () => location.reload(),
  );
}
