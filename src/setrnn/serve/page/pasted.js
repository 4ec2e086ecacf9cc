// A single text that is pasted, typed or dropped.

import { Problem } from "./api.js";
import { focusResults, leave, show } from "./current.js";
import { desk, forgetPast, keepNote, noteOf, PASTED } from "./desk.js";
import { at, confirmed } from "./elements.js";
import { undecided } from "./queue.js";
import { showTrouble } from "./trouble.js";

const DRAFT = "setrnn-draft";
const OF_A_DOCUMENT = ["reading", "edit", "new", "queue", "features", "cut", "document-status"];

export async function tagText(text = at("text").value) {
  if (!text.trim()) {
    showTrouble(new Problem(400, "There is no text yet. Paste a text or drop a file."));
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

// Ask before a text with decisions is replaced; return whether it may be.
export async function mayGo(question, yes) {
  if (desk.current?.position !== PASTED) return true;
  const { present, absent, status } = desk.current.decision;
  if (!present.length && !absent.length && status === "open") return true;
  return confirmed(`${question} Your decisions about this text are lost unless you saved them.`, yes);
}

// Show the text field, and no document.
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

export async function startOver(text) {
  edit(text); // first: a text that is pasted meanwhile must stay
  await desk.store.put("documents", PASTED, null);
}

// Restore the text from before a reload; return whether there was one.
export async function resume() {
  const document = await desk.store.get("documents", PASTED);
  if (!document) {
    at("text").value = noteOf("sessionStorage", DRAFT) ?? "";
    return false;
  }
  await show(PASTED, document, (await desk.store.get("decisions", PASTED)) ?? undecided());
  return true;
}
