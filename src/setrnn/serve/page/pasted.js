// A single text that a person pastes, types or drops.

import { Problem } from "./api.js";
import { focusResults, leave, show } from "./current.js";
import { desk, PASTED } from "./desk.js";
import { at, confirmed } from "./elements.js";
import { forgetPast } from "./history.js";
import { keepNote, noteOf } from "./notes.js";
import { undecided } from "./queue.js";
import { showTrouble } from "./trouble.js";

const DRAFT = "setrnn-draft";
const OF_A_DOCUMENT = ["reading", "edit", "new", "queue", "features", "cut", "document-status"];

export async function tagText(text = at("text").value) {
  if (!text.trim()) {
    showTrouble(new Problem(400, "There is no text yet. Paste one, or drop a file."));
    at("text").focus();
    return;
  }
  const document = { id: null, text, labels: [], features: [] };
  const decision = undecided();
  forgetPast();
  await desk.store.put("documents", PASTED, document);
  await desk.store.put("decisions", PASTED, decision);
  await show(PASTED, document, decision);
  focusResults();
}

// Ask before a text goes that was decided about; tell whether it may.
export async function mayGo(question, yes) {
  if (desk.current?.position !== PASTED) return true;
  const { present, absent, status } = desk.current.decision;
  if (!present.length && !absent.length && status === "open") return true;
  return confirmed(`${question} What you decided about this text is lost unless you saved it.`, yes);
}

// Show the field with a text, and no document.
export function edit(text) {
  leave();
  forgetPast();
  at("text").value = text;
  keepDraft();
  for (const id of OF_A_DOCUMENT) at(id).hidden = true;
  at("document-title").textContent = "Document";
  at("text-form").hidden = false;
  at("welcome").hidden = false;
  at("text").focus();
}

export const keepDraft = () => keepNote("sessionStorage", DRAFT, at("text").value);

export async function editAnew(text) {
  edit(text); // at once: what is pasted meanwhile must stay
  await desk.store.put("documents", PASTED, null);
}

// Go on with what was there before a reload; tell whether there was something.
export async function resume() {
  const document = await desk.store.get("documents", PASTED);
  if (!document) {
    at("text").value = noteOf("sessionStorage", DRAFT) ?? "";
    return false;
  }
  await show(PASTED, document, (await desk.store.get("decisions", PASTED)) ?? undecided());
  return true;
}
