"use strict";
// Lights up the words with the attention of a step; without scripts, the page lists them per step.
const weights = JSON.parse(document.getElementById("weights").textContent);
const words = [...document.querySelectorAll("[data-place]")];
const panels = [...document.querySelectorAll(".attended")];
const choices = [...document.querySelectorAll(".choice")];

function show(step) {
  const row = weights[step];
  const most = row.reduce((a, b) => Math.max(a, b), 1e-9);
  for (const word of words) {
    const weight = row[Number(word.dataset.place)];
    word.style.setProperty("--w", weight / most);
    const share = `${(100 * weight).toFixed(1)}% of the attention`;
    word.title = word.dataset.note ? `${share}; ${word.dataset.note}` : share;
  }
  panels.forEach((panel, number) => panel.classList.toggle("is-chosen", number === step));
}

function chosen() {
  return choices.findIndex((choice) => choice.querySelector("input").checked);
}

choices.forEach((choice, step) => {
  choice.addEventListener("change", () => show(step));
  choice.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(step));
  choice.addEventListener("pointerleave", () => show(chosen()));
});
document.documentElement.classList.add("has-script");
show(Math.max(chosen(), 0));
