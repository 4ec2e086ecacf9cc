// Reading the documents of a file, and writing the decisions.

const SEPARATOR = ";"; // between the labels in a cell, as in `setrnn data`

// Read a file: {documents, left: reason -> numbers of skipped rows, unit: "row" or "line"}.
export function readRows(name, content) {
  const isTable = /\.(csv|tsv)$/i.test(name);
  const rows = isTable ? tableRows(name, content) : jsonRows(content);
  const documents = [];
  const left = new Map();
  for (const { number, row, trouble } of rows) {
    const why = trouble ?? troubleWith(row);
    if (why) left.set(why, [...(left.get(why) ?? []), number]);
    else documents.push(asDocument(row));
  }
  return { documents, left, unit: isTable ? "row" : "line" };
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

export const isQueue = (name) => /\.(jsonl|ndjson|json|csv|tsv)$/i.test(name);

// Replace NUL and unpaired surrogates, which training refuses.
const writable = (value) =>
  typeof value === "string" ? value.replace(/[\0\p{Cs}]/gu, "\uFFFD") : value;

// One line of the training format.
export function asLine({ id, text, features }, labels) {
  const row = { ...(id !== null && { id }), text, labels };
  if (features.length) row.features = features;
  return `${JSON.stringify(row, (_, value) => writable(value))}\n`;
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

function* tableRows(name, text) {
  const separator = separatorOf(name, text);
  const [header = [], ...rows] = cells(text, separator);
  const columns = header.map((each) => each.trim().toLowerCase());
  if (!columns.includes("text")) {
    throw new Error(`${name} has no column 'text'. Its first line must name the columns.`);
  }
  for (const [index, row] of rows.entries()) {
    if (row.length === 1 && !row[0]) continue;
    const number = index + 1;
    const values = Object.fromEntries(columns.map((column, i) => [column, row[i] ?? ""]));
    if (row.length > columns.length) {
      yield { number, trouble: `more cells than the ${columns.length} columns of the header` };
    } else {
      for (const field of ["labels", "features"]) values[field] = parts(values[field]);
      yield { number, row: values };
    }
  }
}

// Return the separator of the first line: spreadsheets write semicolons in many countries.
function separatorOf(name, text) {
  if (/\.tsv$/i.test(name)) return "\t";
  const header = text.slice(0, text.search(/[\r\n]|$/));
  const isOther = (separator) => header.split(separator).some((each) => /^\W*text\W*$/i.test(each));
  return [",", ";", "\t"].find(isOther) ?? ",";
}

const parts = (cell = "") => cell.split(SEPARATOR).map((part) => part.trim()).filter(Boolean);

// Split a table into rows of cells: a quoted cell may contain separators, newlines and "".
export function cells(text, separator) {
  const rows = [];
  let row = [];
  let cell = "";
  let isQuoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (text[i + 1] === '"') cell += text[(i += 1)];
      else isQuoted = false;
    } else if (character === '"' && cell === "") {
      isQuoted = true;
    } else if (character === separator) {
      row.push(cell);
      cell = "";
    } else if (character === "\n" || character === "\r") {
      if (character === "\r" && text[i + 1] === "\n") i += 1;
      rows.push([...row, cell]);
      row = [];
      cell = "";
    } else {
      cell += character;
    }
  }
  if (isQuoted) throw new Error(`Row ${rows.length} has a quote (") that is never closed.`);
  if (cell || row.length) rows.push([...row, cell]);
  return rows;
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

function asDocument({ id, text, labels, features }) {
  return {
    id: id === "" ? null : (id ?? null),
    text,
    labels: [...new Set(labels)].filter(isFilled),
    features: (features ?? []).filter(isFilled),
  };
}
