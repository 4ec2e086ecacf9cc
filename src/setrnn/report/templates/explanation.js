"use strict";
// Lights up the words of a label or of a step; without scripts, the page lists them all.
const weights = JSON.parse(document.getElementById("weights").textContent);
const words = [...document.querySelectorAll("[data-place]")];
const panels = [...document.querySelectorAll(".attended")];
const choices = [...document.querySelectorAll(".choice")];

function show(number) {
  const row = weights[number];
  const isLabel = "label" in choices[number].querySelector("input").dataset;
  const most = row.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  for (const word of words) {
    const weight = row[Number(word.dataset.place)];
    word.style.setProperty("--w", Math.abs(weight) / most);
    word.classList.toggle("is-against", weight < 0);
    const said = isLabel
      ? `${weight < 0 ? "" : "+"}${weight.toFixed(2)} for the label`
      : `${(100 * weight).toFixed(1)}% of the attention`;
    word.title = word.dataset.note ? `${said}; ${word.dataset.note}` : said;
  }
  panels.forEach((panel, each) => panel.classList.toggle("is-chosen", each === number));
}

function chosen() {
  return choices.findIndex((choice) => choice.querySelector("input").checked);
}

choices.forEach((choice, number) => {
  choice.addEventListener("change", () => show(number));
  choice.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(number));
  choice.addEventListener("pointerleave", () => show(chosen()));
});
document.documentElement.classList.add("has-script");
if (choices.length) show(Math.max(chosen(), 0));
