"use strict";
// Sorts tables by their headers, hides notes, saves figures; the page is readable without it.
document.documentElement.classList.add("has-script");

function keyOf(row, column) {
  const cell = row.cells[column];
  if ("value" in cell.dataset) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  return column === 0 || text !== "–" ? text : null;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sort(table, header) {
  const body = table.tBodies[0];
  const column = header.cellIndex;
  const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
  const isNumeric = rows.some(([key]) => typeof key === "number");
  const before = header.getAttribute("aria-sort");
  const first = isNumeric ? "descending" : "ascending";
  const other = isNumeric ? "ascending" : "descending";
  const order = before === first ? other : first;
  const sign = order === "ascending" ? 1 : -1;
  const isThere = ([key]) => (isNumeric ? typeof key === "number" : key !== null);
  const known = rows.filter(isThere).sort(([a], [b]) => sign * compare(a, b));
  const missing = rows.filter((row) => !isThere(row)); // last in both orders
  for (const each of header.parentElement.cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  body.append(...[...known, ...missing].map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.data")) {
  for (const header of table.tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => sort(table, header));
  }
}

for (const table of document.querySelectorAll("table.has-notes")) {
  const choice = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = !matchMedia("(max-width: 36rem)").matches; // a small screen shows the scores only
  const apply = () => table.classList.toggle("hides-notes", !box.checked);
  box.addEventListener("change", apply);
  apply();
  choice.className = "notes-choice";
  choice.append(box, " intervals and p-values");
  table.parentElement.before(choice);
}

for (const link of document.querySelectorAll("a.save")) {
  link.addEventListener("click", () => {
    const picture = link.closest("figure").querySelector("svg");
    const text = new XMLSerializer().serializeToString(picture);
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  });
}

// Open folded parts before printing; long tables are printed only where the reader opened them.
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("section:not(#tables) details")) each.open = true;
});
