// Documents of a file, and the file of what was decided.

const SEPARATOR = ";"; // of labels in one cell, as `setrnn data` reads them

// Read a file: {documents, left: [what was left out, and why]}.
export function readRows(name, content) {
  const text = content.replace(/^\uFEFF/, "");
  const isTable = /\.(csv|tsv)$/i.test(name);
  const rows = isTable ? tableRows(name, text) : jsonRows(text);
  const documents = [];
  const left = [];
  for (const { place, row, trouble } of rows) {
    const why = trouble ?? troubleWith(row);
    if (why) left.push(`${place}: ${why}`);
    else documents.push(asDocument(row));
  }
  return { documents, left };
}

export const isQueue = (name) => /\.(jsonl|ndjson|json|csv|tsv)$/i.test(name);

// One line of the training format.
export function asLine({ id, text, features }, labels) {
  const row = { ...(id !== null && { id }), text, labels };
  if (features.length) row.features = features;
  return `${JSON.stringify(row)}\n`;
}

function* jsonRows(text) {
  for (const [index, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const place = `line ${index + 1}`;
    try {
      yield { place, row: JSON.parse(line) };
    } catch {
      yield { place, trouble: "is not a JSON object on one line." };
    }
  }
}

function* tableRows(name, text) {
  const [header = [], ...rows] = cells(text, /\.tsv$/i.test(name) ? "\t" : ",");
  const columns = header.map((each) => each.trim().toLowerCase());
  if (!columns.includes("text")) {
    throw new Error(`${name} has no column 'text'. Its first line must name the columns.`);
  }
  for (const [index, row] of rows.entries()) {
    if (row.length === 1 && !row[0]) continue;
    const place = `row ${index + 1}`;
    const values = Object.fromEntries(columns.map((column, i) => [column, row[i] ?? ""]));
    if (row.length > columns.length) {
      yield { place, trouble: `has ${row.length} cells, the header has ${columns.length}.` };
    } else {
      for (const field of ["labels", "features"]) values[field] = parts(values[field]);
      yield { place, row: values };
    }
  }
}

const parts = (cell = "") => cell.split(SEPARATOR).map((part) => part.trim()).filter(Boolean);

// Cut a table into rows of cells: a cell in quotes may hold separators, newlines and "".
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
  if (cell || row.length) rows.push([...row, cell]);
  return rows;
}

const isStrings = (value) =>
  Array.isArray(value) && value.every((each) => typeof each === "string");

function troubleWith(row) {
  if (row === null || typeof row !== "object" || Array.isArray(row)) return "is not an object.";
  if (typeof row.text !== "string") return "'text' must be a string.";
  for (const field of ["labels", "features"]) {
    if (row[field] != null && !isStrings(row[field])) return `'${field}' must be a list of strings.`;
  }
  return null;
}

function asDocument({ id, text, labels, features }) {
  return {
    id: id == null || id === "" ? null : String(id),
    text,
    labels: [...new Set(labels ?? [])],
    features: features ?? [],
  };
}
