// A CSV file as documents: which of its columns hold what, and how labels are separated.

import { decode, delimiterOf, encodingOf, likelyEncoding, namedDelimiter, rowsOf } from "./cells.js";
import { count } from "./elements.js";
import { findSeparator, ONE_LABEL, readList, splitCell } from "./label_cells.js";
import { asDocument, leaveOut } from "./rows.js";

export const NO_COLUMN = -1;
const USUAL = ";"; // the separator where no other is in sight

// What such columns are often called (data/read/row.py).
const NAMES = {
  text: ["text", "description", "body", "content", "abstract", "summary"],
  labels: ["labels", "label", "tags", "genres", "genre", "categories", "category", "topics", "topic",
    "keywords", "subjects", "classes", "listed_in"],
  id: ["id", "key", "identifier", "uid", "show_id", "document_id", "doc_id"],
  features: ["features", "feature"],
};

// Read a file; what is not given is recognised. An encoding that is only likely must be confirmed.
export function tableOf(name, bytes, { encoding: given = encodingOf(bytes), delimiter = null } = {}) {
  const encoding = given ?? likelyEncoding(bytes);
  const wrong = (why) => new Error(`${name} ${why}`);
  let text;
  try {
    text = decode(bytes, encoding).replace(/^\uFEFF/, "");
  } catch {
    throw wrong(`is not a text in ${encoding}. Choose another encoding.`);
  }
  if (text.includes("\0")) throw wrong("is not a text. Save it as CSV in UTF-8.");
  if (!text.trim()) throw wrong("is empty.");
  const [hint, named = null] = namedDelimiter(text);
  const chosen = delimiter ?? named ?? delimiterOf(name, text);
  const [head, ...rows] = rowsOf(text.slice(hint.length), chosen);
  if (head.trouble) throw wrong(`has no header that can be read: line ${head.line} ${head.trouble}.`);
  return { name, encoding, isGuessed: given === null, delimiter: chosen, header: head.cells.map((each) => each.trim()), rows };
}

function columnOf(table, role) {
  const names = table.header.map((each) => each.toLowerCase());
  return NAMES[role].map((name) => names.indexOf(name)).find((column) => column >= 0) ?? NO_COLUMN;
}

// Choose the columns that the model was trained from (`kept`), or else by their names, and the
// longest texts if no name says text.
export function guessChoice(table, kept = {}) {
  const find = (role) => (kept[`${role}_field`] ?? "").split(",").map((each) => table.header.indexOf(each.trim()));
  const one = (role) => (find(role)[0] === NO_COLUMN ? columnOf(table, role) : find(role)[0]);
  const [named, labels] = [columnOf(table, "text"), one("labels")];
  const usual = [named === NO_COLUMN ? longestColumn(table) : named];
  return {
    text: find("text").includes(NO_COLUMN) ? usual : find("text"),
    labels,
    id: one("id"),
    features: one("features"),
    separator: guessSeparator(table, labels),
  };
}

function longestColumn({ header, rows }) {
  const lengths = header.map(() => 0);
  for (const { cells = [] } of rows.slice(0, 100)) {
    lengths.forEach((_, i) => { lengths[i] += (cells[i] ?? "").length; });
  }
  return lengths.indexOf(Math.max(...lengths));
}

const cellsOf = ({ rows }, column) =>
  rows.map(({ cells }) => cells?.[column] ?? "").filter((cell) => cell.trim());

export const guessSeparator = (table, column) => findSeparator(cellsOf(table, column)) ?? USUAL;

// Return the separator that is probably meant, and in how many cells it is, if the chosen one never
// occurs: each cell would become one label. Null if all is well.
export function doubtAbout(table, { labels, separator }) {
  if (separator === ONE_LABEL) return null;
  const cells = cellsOf(table, labels);
  if (cells.some((cell) => cell.includes(separator) || readList(cell))) return null;
  const meant = findSeparator(cells);
  if (meant === null || meant === separator) return null;
  return { meant, n: cells.filter((cell) => cell.includes(meant)).length };
}

// Turn the rows into documents: {documents, left: reason -> numbers of skipped lines}.
export function documentsOf(table, choice) {
  const n = table.header.length;
  const documents = [];
  const left = new Map();
  for (const { line, cells, trouble } of table.rows) {
    if (trouble) leaveOut(left, trouble, line);
    else if (cells.length !== n) leaveOut(left, `${count(cells.length, "cell")}, the header has ${n}`, line);
    else documents.push(documentOf(choice, cells));
  }
  return { documents, left };
}

// A document keeps its cells for the export; null stands for its text, which may be long.
function documentOf(choice, cells) {
  const { text, labels, id, features, separator } = choice;
  const document = asDocument({
    id: cells[id],
    text: text.map((column) => cells[column]).join("\n"),
    labels: splitCell(cells[labels], separator),
    features: splitCell(cells[features], separator),
  });
  const isText = (column) => text.length === 1 && column === text[0];
  return { ...document, cells: cells.map((cell, column) => (isText(column) ? null : cell)) };
}
