"use strict";
// Sorts tables by their headers; the page is readable without it.
document.documentElement.classList.add("has-script");

function keyOf(row, column) {
  const cell = row.cells[column];
  if ("value" in cell.dataset) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  return text === "–" ? null : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sort(table, header) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [keyOf(row, header.cellIndex), row]);
  const isNumeric = rows.some(([key]) => typeof key === "number");
  const isFalling = isNumeric && header.dataset.better !== "lower"; // the best first
  const [first, other] = isFalling ? ["descending", "ascending"] : ["ascending", "descending"];
  const order = header.getAttribute("aria-sort") === first ? other : first;
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

// Open the section that a link leads to, and all of them before printing.
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.closest("details.section")?.setAttribute("open", "");
}
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details.section")) each.open = true;
});
