// The page: what keys, clicks and dropped files do.

import { choose, ready } from "./choosers.js";
import * as current from "./current.js";
import { desk, keepNote, loadPast, noteOf, PASTED, takeLast } from "./desk.js";
import { at, key, make, saveFile, say } from "./elements.js";
import { keepDraft, mayGo, resume as resumeText, startOver, tagText } from "./pasted.js";
import * as queue from "./queue_page.js";
import { showAll } from "./results.js";
import { asLine, isQueue, isSpreadsheet, isTable, readRows, textOf } from "./rows.js";
import { makeSearch } from "./search.js";
import { tableOf } from "./table.js";
import { chooseColumns } from "./table_page.js";
import { findLabels, remember } from "./tagging.js";
import { listenToTree } from "./tree.js";
import { attempt, openDesk } from "./trouble.js";

const KEYS = {
  y: ["accept the suggestion", () => current.answer("accepted")],
  n: ["reject the suggestion", () => current.answer("rejected")],
  d: ["done: take the set shown; in a queue, go to the next open document", done],
  u: ["undo the last decision, also in a document that is done", undo],
  "/": ["search for a label to add", () => desk.current && at("search").focus()],
  j: ["next document of the queue", () => attempt(() => queue.step(1))],
  k: ["previous document", () => attempt(() => queue.step(-1))],
  s: ["skip this document", () => attempt(queue.skip)],
  e: ["edit the text", () => at("edit").hidden || at("edit").click()],
  "?": ["show these keys", () => { at("keys").open = !at("keys").open; }],
};
const KEYS_OF_A_LABEL = {
  Enter: "on a label: accept it; again: reject it; again: undecided",
  Delete: "on a label: reject it",
  "↑↓←→": "in the tree: move, open and close",
};
const ACTS = {
  turn: ({ label }) => current.turn(label),
  accept: ({ label }) => current.decide(label, "accepted"),
  reject: ({ label }) => current.reject(label),
  take: ({ labels }) => current.takeOther(JSON.parse(labels)),
};
const CLICKS = {
  edit: () => attempt(editText),
  new: () => attempt(() => startOver("")),
  done,
  undo,
  save: saveDocument,
  more: () => { showAll(at("more").textContent !== "Show fewer"); current.draw(); },
  previous: KEYS.k[1],
  next: KEYS.j[1],
  skip: KEYS.s[1],
  "accept-settled": () => attempt(queue.acceptSettled),
  export: () => attempt(() => queue.exportQueue("jsonl")),
  "export-csv": () => attempt(() => queue.exportQueue("csv")),
  "example-text": () => attempt(async () => takeText(await exampleText())),
  "example-file": () => attempt(async () => openFile(await exampleFile())),
  clear: () => attempt(queue.clear),
};
const CHANGES = {
  order: () => attempt(() => queue.reorder(at("order").value)),
  model: () => attempt(changeModel),
  rule: () => attempt(changeModel),
  file: () => {
    const [file] = at("file").files;
    if (file) attempt(() => openFile(file)).then(() => { at("file").value = ""; });
  },
  "keys-on": () => keepNote("localStorage", "setrnn-keys", at("keys-on").checked ? "on" : "off"),
};

function done() {
  if (!desk.current?.prediction) return;
  current.takeShown();
  if (desk.current.position !== PASTED) attempt(queue.goOn);
}

// The last decision may belong to another document.
function undo() {
  const last = takeLast();
  if (last === null) return;
  say(at("queue-hint"), "");
  if (last.positions) attempt(() => queue.reopen(last));
  else if (last.position === desk.current?.position) current.restore(last.decision);
  else attempt(() => queue.goBack(last));
}

function saveDocument() {
  const { document, decision } = desk.current;
  saveFile("document-tagged.jsonl", [asLine(document, decision.labels)]);
  desk.isAtRisk = false;
}

async function changeModel() {
  await choose(at("model").value, at("rule").value);
  queue.stopPredicting();
  if (desk.current) await current.ask();
}

async function openFile(file) {
  if (isSpreadsheet(file.name)) {
    throw new Error(`${file.name} is a spreadsheet. Save its sheet as CSV (UTF-8), and open that file.`);
  }
  const isText = !isQueue(file.name);
  if (isText && desk.queue) throw new Error("A queue is open. Clear it before you tag a single text.");
  if (isText) return takeText(await textOf(file));
  const found = isTable(file.name) ? await chooseColumns(file) : readRows(await textOf(file));
  return found && queue.openQueue(file.name, found);
}

// The example is a file of this server.
async function exampleFile() {
  const answer = await fetch("page/example.csv");
  return new File([await answer.blob()], "example.csv");
}

async function exampleText() {
  const { rows } = tableOf("example.csv", new Uint8Array(await (await exampleFile()).arrayBuffer()));
  return rows[0].cells.slice(1, 3).join("\n");
}

async function takeText(text) {
  if (await mayGo("Replace the text?", "Replace")) await tagText(text);
}

async function editText() {
  const { text } = desk.current.document;
  if (await mayGo("Edit the text?", "Edit")) await startOver(text);
}

function dropped({ files, text }) {
  if (desk.isElsewhere || document.querySelector("dialog[open]")) return;
  if (files.length) attempt(() => openFile(files[0]));
  else if (text && !desk.queue) attempt(() => takeText(text));
}

function drawKeys() {
  const ofPage = Object.entries(KEYS).map(([name, [what]]) => [name, what]);
  const rows = [...ofPage, ...Object.entries(KEYS_OF_A_LABEL)].map(([name, what]) =>
    make("div", {}, make("dt", {}, key(name)), make("dd", { textContent: what })),
  );
  at("key-list").replaceChildren(...rows);
  at("keys-on").checked = noteOf("localStorage", "setrnn-keys") !== "off";
}

function onKey(event) {
  const { target } = event;
  const isTyping = target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (desk.isElsewhere) return;
  if (event.repeat) return holdBack(event);
  const name = event.key.toLowerCase(); // also with Caps Lock
  if (event.key === "Delete" && target.dataset.label) {
    current.decide(target.dataset.label, "rejected");
  } else if (at("keys-on").checked && Object.hasOwn(KEYS, name)) {
    event.preventDefault();
    KEYS[name][1]();
  }
}

// A key that is held down acts once, also Enter on a button.
function holdBack(event) {
  if (event.key === "Enter" && event.target.closest("button")) event.preventDefault();
}

function listen() {
  document.addEventListener("keydown", onKey);
  for (const [id, act] of Object.entries(CLICKS)) at(id).addEventListener("click", act);
  for (const [id, act] of Object.entries(CHANGES)) at(id).addEventListener("change", act);
  listenToResults(at("results"));
  listenToTree(current.turn);
  listenToText(at("text"), at("text-form"));
  listenToDrops(document.body);
  makeSearch(
    findLabels,
    queue.findAdded,
    (label, isKnown) => {
      if (isKnown !== null) remember([label], isKnown);
      current.decide(label, "accepted");
      at("reading").focus({ preventScroll: true }); // the next key is not typed
    },
  );
}

function listenToResults(results) {
  results.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-act]");
    if (button) ACTS[button.dataset.act](button.dataset);
  });
  results.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return; // a touch has no end
    current.point(event.target);
  });
  results.addEventListener("pointerleave", () => current.point(null));
  results.addEventListener("focusin", current.highlightWords);
  results.addEventListener("focusout", () => setTimeout(current.highlightWords));
}

function listenToText(text, form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => tagText());
  });
  text.addEventListener("input", keepDraft);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  text.addEventListener("paste", () => {
    if (!text.value) setTimeout(() => form.requestSubmit()); // after the field has the text
  });
}

function listenToDrops(body) {
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    body.classList.add("is-dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) body.classList.remove("is-dropping");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    body.classList.remove("is-dropping");
    const { dataTransfer } = event;
    dropped({ files: dataTransfer.files, text: dataTransfer.getData("text/plain") });
  });
}

async function resume() {
  await loadPast();
  if (!((await queue.resume()) || (await resumeText()))) await ready();
}

await openDesk();
drawKeys();
listen();
await attempt(resume);
document.documentElement.dataset.ready = "true";
