// The cells of a CSV file, read by the rules of `setrnn` (data/read/delimited.py).

export const DELIMITERS = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars" };
export const ENCODINGS = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16 (little-endian)",
  "utf-16be": "UTF-16 (big-endian)",
  cp1252: "Windows-1252",
  "latin-1": "Latin-1",
};
const MARKS = { "255 254": "utf-16le", "254 255": "utf-16be" }; // byte order marks
const N_LINES = 20; // that show the delimiter
const USUAL_NAMES = ["text", "labels", "id"];
const MAX_REREAD = 10; // times the length of the file, after quotes that are not closed
const LINE_END = /\r\n|\n|\r/g;
const UNCLOSED = 'opens a quote (") that is not closed';
const UNDOUBLED = "has a quote inside a quoted cell that is not doubled";

// UTF-8 or, by its byte order mark, UTF-16; null if a person must choose.
export function encodingOf(bytes) {
  const marked = MARKS[`${bytes[0]} ${bytes[1]}`];
  if (marked) return marked;
  return likelyEncoding(bytes) === "utf-8" ? "utf-8" : null;
}

// Files without a mark are most likely in UTF-16 if every second byte is NUL, in Windows-1252 if they
// are not UTF-8.
export function likelyEncoding(bytes) {
  const nuls = [0, 1].map((odd) => bytes.subarray(0, 1000).filter((byte, i) => !byte && i % 2 === odd).length);
  if (3 * Math.max(...nuls) >= Math.min(bytes.length, 1000)) return nuls[1] > nuls[0] ? "utf-16le" : "utf-16be";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return "utf-8";
  } catch {
    return "cp1252";
  }
}

// Decode a file. Lines of one that is not UTF-8 may still be: such files were joined from others.
export function decode(bytes, encoding) {
  if (encoding.startsWith("utf")) return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  const lines = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(10, from) + 1 || bytes.length; // after the newline
    lines.push(decodeLine(bytes.subarray(from, end), encoding));
    from = end;
  }
  return lines.join("");
}

function decodeLine(bytes, encoding) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    if (encoding === "cp1252") return new TextDecoder(encoding).decode(bytes);
    return Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""); // browsers have no Latin-1
  }
}

// Return the delimiter under which the first lines look most like a table: its header has the usual
// names, its rows are equally long, it has many columns.
export function delimiterOf(name, text) {
  const usual = /\.tsv$/i.test(name) ? "\t" : ",";
  const first = text.split(/(?<=\n)/, N_LINES).join("");
  let best = null;
  for (const delimiter of new Set([usual, ...Object.keys(DELIMITERS)])) {
    const rating = rate([...rowsOf(first, delimiter)]);
    if (best === null || compare(rating, best.rating) > 0) best = { delimiter, rating };
  }
  return best.delimiter;
}

function rate([head, ...rows]) {
  const names = head?.cells ?? [];
  const whole = rows.length > 1 ? rows.slice(0, -1) : rows; // the last may continue behind these lines
  const isRegular = names.length > 1 && whole.every(({ cells }) => cells?.length === names.length);
  const n = USUAL_NAMES.filter((each) => names.some((name) => name.trim() === each)).length;
  return [n, Number(isRegular), names.length];
}

const compare = (a, b) => a.map((each, i) => each - b[i]).find((each) => each !== 0) ?? 0;

// A spreadsheet may write the delimiter above the header: "sep=;".
export const namedDelimiter = (text) => text.match(/^"?sep=(.)"?[ \t]*\r?\n/i) ?? [""];

// Yield the rows that are not empty: {line, cells}, or {line, trouble} where one cannot be read.
// After a broken row, reading continues at the next line.
export function* rowsOf(text, delimiter) {
  let [from, line, reread] = [0, 1, 0];
  while (from < text.length) {
    const { cells, trouble, next, end } = readRow(text, from, delimiter);
    if (trouble) reread += end - next;
    if (reread > MAX_REREAD * text.length) {
      throw new Error(`Line ${line}: too many quotes are not closed. Double the quotes inside cells.`);
    }
    if (trouble || cells.length > 1 || cells[0]) {
      yield trouble ? { line, trouble } : { line, cells };
    }
    line += text.slice(from, next).match(LINE_END)?.length ?? 0;
    from = next;
  }
}

// Read the row that starts at `from`: a quoted cell may contain delimiters, line ends and "".
function readRow(text, from, delimiter) {
  const cells = [];
  let i = from;
  for (;;) {
    let cell = "";
    if (text[i] === '"') {
      let quote = i;
      do {
        const start = quote + 1;
        quote = text.indexOf('"', start);
        if (quote < 0) return broken(text, from, text.length, UNCLOSED);
        cell += text.slice(start, quote);
        quote += 1;
        if (text[quote] === '"') cell += '"';
      } while (text[quote] === '"');
      i = quote;
      if (i < text.length && text[i] !== delimiter && text[i] !== "\n" && text[i] !== "\r") {
        return broken(text, from, i, UNDOUBLED);
      }
    } else {
      const start = i;
      while (i < text.length && text[i] !== delimiter && text[i] !== "\n" && text[i] !== "\r") i += 1;
      cell = text.slice(start, i);
    }
    cells.push(cell);
    if (text[i] !== delimiter) break;
    i += 1;
  }
  return { cells, next: i + (text.startsWith("\r\n", i) ? 2 : 1) };
}

function broken(text, from, end, trouble) {
  LINE_END.lastIndex = from;
  const found = LINE_END.exec(text);
  LINE_END.lastIndex = 0;
  return { trouble, end, next: found ? found.index + found[0].length : text.length };
}
