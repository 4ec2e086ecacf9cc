// Cells that hold several labels, by the rules of `setrnn` (data/read/label_cells.py).

export const ONE_LABEL = "none"; // as a separator: each cell is one label
const SEPARATORS = ["\t", "\n", ",", ";", "|"]; // that files use; of equally good ones, the first
const N_LOOKED_AT = 1000; // cells
const TAGS = /^\s*(?:<[^<>]+>)+\s*$/;
const LEAST_SHARE = 0.3; // of the cells with a separator, if splitting them does not give fewer labels
const IN_LIST = /\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(,|$)/y; // a string in a list

// Return the parts of a cell, without spaces around them and without empty ones. A cell that is a
// list of strings, as JSON and Python write it, is that list, and so are tags alone: <a><b>.
export function splitCell(cell = "", separator) {
  if (separator === ONE_LABEL) return filled([cell]);
  return readList(cell) ?? filled(cell.split(separator === " " ? /\s+/ : separator));
}

const filled = (parts) => parts.map((part) => part.trim()).filter(Boolean);

export function readList(cell) {
  if (TAGS.test(cell)) return filled(cell.trim().slice(1, -1).split("><"));
  if (!cell.startsWith("[") || !cell.endsWith("]")) return null;
  try {
    const values = JSON.parse(cell);
    return values.every((each) => typeof each === "string") ? filled(values) : null;
  } catch {
    return readPythonList(cell.slice(1, -1));
  }
}

function readPythonList(inside) {
  const values = [];
  IN_LIST.lastIndex = 0;
  while (IN_LIST.lastIndex < inside.trimEnd().length) {
    const found = IN_LIST.exec(inside);
    if (!found) return null;
    values.push((found[1] ?? found[2]).replace(/\\(.)/g, "$1"));
    if (!found[3]) break;
  }
  return filled(values);
}

// Return the separator that cells of labels seem to have; null if each is one label. Many cells hold
// it, or it turns them into fewer different labels.
export function findSeparator(cells) {
  const whole = cells.slice(0, N_LOOKED_AT).map((cell) => cell.trim());
  const distinct = [...new Set(whole)];
  let best = null;
  for (const separator of SEPARATORS) {
    const n = whole.filter((cell) => cell.includes(separator)).length;
    const size = new Set(distinct.flatMap((cell) => splitCell(cell, separator))).size;
    const isOne = n > 0 && (size < distinct.length || n >= LEAST_SHARE * whole.length);
    const isBetter = best === null || size < best.size || (size === best.size && n > best.n);
    if (isOne && isBetter) best = { separator, size, n };
  }
  return best?.separator ?? null;
}
