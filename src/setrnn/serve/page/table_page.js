// The choice of the columns of a CSV file, with a preview of its first documents.

import { DELIMITERS, ENCODINGS } from "./cells.js";
import { at, count, make, named, number, say } from "./elements.js";
import { ONE_LABEL } from "./label_cells.js";
import { leftOut } from "./queue_page.js";
import { documentsOf, doubtAbout, guessChoice, guessSeparator, NO_COLUMN, tableOf } from "./table.js";
import { server } from "./tagging.js";

const N_SHOWN = 5; // documents of the preview
const N_LABELS = 8; // named below it
const MAX_TEXT = 120; // characters of a document
const MAX_CELL = 60;
const OTHER = "other";
const SEPARATORS = {
  ",": "commas: “,”",
  ";": "semicolons: “;”",
  "|": "vertical bars: “|”",
  "/": "slashes: “/”",
  " ": "spaces",
  "\t": "tabs",
  "\n": "line ends",
  [ONE_LABEL]: "nothing: each cell is one label",
  [OTHER]: "something else …",
};

let table = null; // the file, see table.js
let choice = null; // its columns
let failure = ""; // why it cannot be read as asked for

// Ask how to read a table; return its documents, or null if the person cancels.
export async function chooseColumns(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  read(tableOf(file.name, bytes));
  at("table-reading").open = table.encoding !== "utf-8" || table.header.length === 1;
  const reread = () => {
    const [chosen, delimiter] = [at("table-encoding").value, at("table-delimiter").value];
    const encoding = chosen || undefined; // none is chosen yet
    try {
      read(tableOf(file.name, bytes, { encoding, delimiter }));
    } catch (error) {
      failure = error.message;
      draw();
    }
  };
  for (const id of ["table-encoding", "table-delimiter"]) at(id).onchange = reread;
  const dialog = at("table");
  dialog.returnValue = "no";
  dialog.showModal();
  at("table-texts").querySelector(":checked").scrollIntoView({ block: "nearest" });
  dialog.scrollTop = 0;
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "yes") return null;
  const { header, delimiter } = table;
  const { labels, features, separator } = choice;
  return { ...documentsOf(table, choice), table: { header, delimiter, labels, features, separator } };
}

function read(found) {
  table = found;
  choice = guessChoice(table, server.model?.columns);
  failure = "";
  fill("table-delimiter", Object.entries(DELIMITERS), table.delimiter);
  const unknown = table.isGuessed ? [["", "choose …"]] : [];
  fill("table-encoding", [...unknown, ...Object.entries(ENCODINGS)], table.isGuessed ? "" : table.encoding);
  const columns = table.header.map((_, i) => [i, titleOf(i)]);
  const optional = (what) => [[NO_COLUMN, what], ...columns];
  fill("table-labels", optional("the file has no labels"), choice.labels);
  fill("table-id", optional("the file has no ids"), choice.id);
  fill("table-features", optional("the file has no features"), choice.features);
  fill("table-separator", Object.entries(SEPARATORS), choice.separator);
  at("table-texts").replaceChildren(...columns.map(([i]) => textColumn(i)));
  draw();
}

const fill = (id, options, chosen) =>
  at(id).replaceChildren(
    ...options.map(([value, text]) => make("option", { value, textContent: text, selected: value === chosen })),
  );

const wordsFor = (separator) => (SEPARATORS[separator] ?? `“${separator}”`).split(":")[0];

const nameOf = (column) => table.header[column] || `column ${number(column + 1)}`;

// The name of a column, and what its first cell holds.
function titleOf(column) {
  const example = exampleOf(column);
  return example ? `${nameOf(column)}: ${example}` : nameOf(column);
}

function exampleOf(column) {
  const filled = table.rows.find(({ cells }) => cells?.[column]?.trim());
  return filled ? cut(filled.cells[column], MAX_CELL) : "";
}

const cut = (text, most) => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most).replace(/[\uD800-\uDBFF]$/, "")} …` : line;
};

const textColumn = (column) =>
  make(
    "label",
    { className: "column" },
    make("input", { type: "checkbox", value: column, checked: choice.text.includes(column) }),
    named(nameOf(column), "strong"),
    make("span", { className: "hint", textContent: exampleOf(column), dir: "auto" }),
  );

// Draw what would be opened.
function draw() {
  at("table-title").textContent = `Columns of ${table.name}`;
  const { documents, left } = documentsOf(table, { ...choice, separator: choice.separator ?? ONE_LABEL });
  const hasLabels = choice.labels !== NO_COLUMN;
  at("table-separator-field").hidden = !hasLabels;
  at("table-other-field").hidden = !hasLabels || at("table-separator").value !== OTHER;
  const delimiter = DELIMITERS[table.delimiter] ?? `“${table.delimiter}”`;
  const encoding = `${ENCODINGS[table.encoding]}${table.isGuessed ? "?" : ""}`;
  say(at("table-how"), `cells separated by ${delimiter}, ${encoding}`);
  at("table-preview").replaceChildren(...documents.slice(0, N_SHOWN).map((each) => preview(each, hasLabels)));
  say(at("table-found"), found(documents, hasLabels));
  say(at("table-left"), leftOut(left));
  const doubt = troubleWith(documents);
  say(at("table-doubt"), doubt);
  at("table-open").disabled = doubt !== "";
  at("table-open").textContent = documents.length ? `Open ${count(documents.length, "document")}` : "Open";
}

function preview({ id, text, labels }, hasLabels) {
  const shown = labels.map((label) => make("span", { className: "tag" }, named(label)));
  const none = make("span", { className: "none hint", textContent: "no labels" });
  return make(
    "li",
    {},
    make("p", {}, ...(id === null ? [] : [named(id, "strong"), " "]), named(cut(text, MAX_TEXT) || "(empty)", "span")),
    ...(hasLabels ? [make("p", { className: "tags" }, ...(shown.length ? shown : [none]))] : []),
  );
}

// "600 documents, 42 labels: Dramas (2,427), Comedies (1,674) and 40 more."
function found(documents, hasLabels) {
  const n = count(documents.length, "document");
  if (!hasLabels) return `${n}, without labels: the model proposes them.`;
  const counts = new Map();
  for (const label of documents.flatMap(({ labels }) => labels)) counts.set(label, (counts.get(label) ?? 0) + 1);
  const ranked = [...counts].sort(([, a], [, b]) => b - a);
  const names = ranked.slice(0, N_LABELS).map(([label, times]) => `${cut(label, MAX_CELL)} (${number(times)})`);
  const more = ranked.length > N_LABELS ? ` and ${number(ranked.length - N_LABELS)} more` : "";
  const list = names.length ? `: ${names.join(", ")}${more}` : "";
  return `${n}, ${count(counts.size, "label")}${list}. Labels of the file count as accepted.`;
}

// What must be settled before the file can be opened; "" if nothing.
function troubleWith(documents) {
  if (failure) return failure;
  if (table.isGuessed) {
    return (
      `${table.name} is not in UTF-8. It is probably in ${ENCODINGS[table.encoding]}, as shown above: ` +
      "choose its encoding."
    );
  }
  if (!choice.text.length) return "Choose at least one column of text.";
  if (choice.separator === null) return "Type the separator of the labels.";
  if (!documents.length) return "No line can be read as a document.";
  const doubt = choice.labels === NO_COLUMN ? null : doubtAbout(table, choice);
  if (doubt === null) return "";
  const [given, meant] = [choice.separator, doubt.meant].map(wordsFor);
  return (
    `Each cell would become one label: no cell of “${nameOf(choice.labels)}” has ${given}, but ` +
    `${count(doubt.n, "cell")} ${doubt.n === 1 ? "has" : "have"} ${meant}. Separate labels by ${meant}, or ` +
    `choose “${SEPARATORS[ONE_LABEL]}”.`
  );
}

function change({ target }) {
  if (target.id === "table-encoding" || target.id === "table-delimiter") return; // read again
  const column = (id) => Number(at(id).value);
  const labels = column("table-labels");
  if (target.id === "table-labels") {
    choice.separator = guessSeparator(table, labels);
    at("table-separator").value = choice.separator;
  }
  const { value } = at("table-separator");
  if (target.id === "table-separator" && value === OTHER) at("table-other").value = "";
  choice = {
    text: [...at("table-texts").querySelectorAll(":checked")].map((each) => Number(each.value)),
    labels,
    id: column("table-id"),
    features: column("table-features"),
    separator: value === OTHER ? at("table-other").value || null : value,
  };
  draw();
  if (target.id === "table-separator" && value === OTHER) at("table-other").focus();
}

at("table").addEventListener("input", change);
at("table-cancel").addEventListener("click", () => at("table").close("no"));
