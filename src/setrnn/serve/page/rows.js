// Reading the documents of a JSONL file, and writing the decisions.

import { ONE_LABEL } from "./label_cells.js";

const SEPARATORS = [";", "|", ","]; // between the labels in a cell; the first is the usual one
// A spreadsheet would run such a cell, or such a part of one: as in data/read/write.py.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const INNER_FORMULA = /([;\t\r\n]"*)([=+\-@＝＋－＠][^;\t\r\n]*)/g;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

const PLAIN = { header: ["id", "text"], delimiter: ",", labels: -1, features: -1, separator: ";" };

// Read a file: {documents, left: reason -> numbers of skipped lines}.
export function readRows(content) {
  const documents = [];
  const left = new Map();
  for (const { number, row, trouble } of jsonRows(content)) {
    const why = trouble ?? troubleWith(row);
    if (why) leaveOut(left, why, number);
    else documents.push(asDocument(row));
  }
  return { documents, left };
}

export function leaveOut(left, why, number) {
  if (!left.has(why)) left.set(why, []);
  left.get(why).push(number);
}

// Decode a file as UTF-8, or as UTF-16 if it starts with its byte order mark.
export async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = `${bytes[0]} ${bytes[1]}`;
  const encoding = { "255 254": "utf-16le", "254 255": "utf-16be" }[mark] ?? "utf-8";
  const wrong = new Error(`${file.name} is not a text in UTF-8. Save it as UTF-8, or choose another file.`);
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw wrong;
  }
  if (text.includes("\0")) throw wrong; // as in images and archives
  if (!text.trim()) throw new Error(`${file.name} is empty.`);
  return text;
}

export const isSpreadsheet = (name) => /\.(xlsx|xls|xlsm|ods|numbers)$/i.test(name);
export const isTable = (name) => /\.(csv|tsv)$/i.test(name);
export const isQueue = (name) => isTable(name) || /\.(jsonl|ndjson|json)$/i.test(name);

// Replace NUL and unpaired surrogates, which training refuses.
const writable = (value) =>
  typeof value === "string" ? value.replace(/[\0\p{Cs}]/gu, "\uFFFD") : value;

// One line of the training format.
export function asLine({ id, text, features }, labels, isReviewed = true) {
  const row = { ...(id !== null && { id }), text, labels };
  if (features.length) row.features = features;
  if (!isReviewed) row.reviewed = false;
  return `${JSON.stringify(row, (_, value) => writable(value))}\n`;
}

// The lines of a CSV file, and the separator of its labels. A document that was read from a table
// keeps its columns; the labels replace those of the table, or come in a column of their own.
export function asTable(decided, table) {
  const { header, delimiter, labels: at, features: also, separator: own } = table ?? PLAIN;
  const names = [...header];
  const placeOf = (name) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
  const labelsAt = at >= 0 ? at : placeOf("labels");
  const hasFeatures = decided.some(({ document }) => document.features.length);
  const featuresAt = also >= 0 || !hasFeatures ? also : placeOf("features");
  const reviewedAt = placeOf("reviewed");
  const separator = separatorFor(decided, own);
  const joint = /[,;]/.test(separator) ? `${separator} ` : separator;
  const line = (cells) => `${cells.map((each) => asCell(each, delimiter)).join(delimiter)}\r\n`;
  const rows = decided.map(({ document, labels, isReviewed }) => {
    const cells = table ? document.cells.map((each) => each ?? document.text) : [document.id ?? "", document.text];
    cells[labelsAt] = labels.join(joint);
    if (featuresAt >= 0) cells[featuresAt] = document.features.join(joint);
    cells[reviewedAt] = isReviewed;
    return line(cells);
  });
  return { separator, lines: ["\uFEFF", line(names), ...rows] }; // the mark is for spreadsheets
}

// The separator of the file, or another one if a label contains it.
function separatorFor(decided, preferred) {
  const names = decided.flatMap(({ document, labels }) => [...labels, ...document.features]);
  const isFree = (separator) => !names.some((name) => name.includes(separator));
  const found = [preferred, ...SEPARATORS].find((each) => each !== ONE_LABEL && isFree(each));
  if (found) return found;
  throw new Error("The labels contain each of ; | and , so that a cell cannot hold several. Export JSONL.");
}

const neutraliseStart = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);

// What a spreadsheet would run as a formula gets an apostrophe.
export const neutralise = (text) =>
  neutraliseStart(
    text.replace(INNER_FORMULA, (_, start, part) => start + neutraliseStart(part)),
  );

function asCell(value, delimiter) {
  const text = neutralise(writable(String(value)));
  const isQuoted = /["\r\n]|^\s|\s$/.test(text) || text.includes(delimiter);
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text;
}

function* jsonRows(text) {
  for (const [index, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    try {
      yield { number: index + 1, row: JSON.parse(line) };
    } catch {
      yield { number: index + 1, trouble: "not a JSON object on one line" };
    }
  }
}

const isStrings = (value) =>
  Array.isArray(value) && value.every((each) => typeof each === "string");

function troubleWith(row) {
  if (row === null || typeof row !== "object" || Array.isArray(row)) return "not an object";
  if (typeof row.text !== "string") return "'text' must be a string";
  if (!(row.id == null || typeof row.id === "string" || Number.isSafeInteger(row.id))) {
    return "'id' must be a string, or a whole number of at most 15 digits";
  }
  for (const field of ["labels", "features"]) {
    if (row[field] != null && !isStrings(row[field])) return `'${field}' must be a list of strings`;
  }
  return null;
}

const isFilled = (name) => name.trim() !== ""; // training refuses empty names

export function asDocument({ id, text, labels, features }) {
  return {
    id: id === "" ? null : (id ?? null),
    text,
    labels: [...new Set(labels)].filter(isFilled),
    features: (features ?? []).filter(isFilled),
  };
}
