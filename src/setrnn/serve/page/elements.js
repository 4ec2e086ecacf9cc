// DOM helpers. Text from users is only ever set as text.

export const at = (id) => document.getElementById(id);

export function make(tag, values = {}, ...children) {
  const { data = {}, aria = {}, on = {}, ...properties } = values;
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children);
  return element;
}

// A label, a text or a file name, in its own writing direction.
export const named = (text, tag = "bdi") => make(tag, { textContent: text, dir: "auto" });

export const key = (name) => make("kbd", { textContent: name });

export function percent(probability) {
  const value = 100 * probability;
  if (value >= 99.95 && value < 100) return "> 99.9%";
  if (value > 0 && value < 0.1) return "< 0.1%";
  return `${value.toFixed(1)}%`;
}

// A probability in few characters.
export function roundPercent(probability) {
  const value = Math.round(100 * probability);
  if (value === 100 && probability < 1) return "> 99%";
  return value === 0 && probability > 0 ? "< 1%" : `${value}%`;
}

// A bar as long as a probability; `from` puts a mark on it.
export function bar(probability, kind = "", from = null) {
  const filled = make("i", { className: kind });
  filled.style.width = `${Math.min(100 * probability, 100)}%`;
  const track = make("span", { className: "track", ariaHidden: "true" }, filled);
  if (from === null) return track;
  const mark = make("b", { className: "from" });
  mark.style.left = `${100 * from}%`;
  track.append(mark);
  return track;
}

export const number = (n) => n.toLocaleString("en");

export const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

export function say(element, text) {
  element.textContent = text ?? "";
  element.hidden = !text;
}

export function saveFile(name, lines) {
  const url = URL.createObjectURL(new Blob(lines));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Ask a question; return whether the answer is yes.
export function confirmed(text, yes) {
  const question = at("question");
  at("question-text").textContent = text;
  at("question-yes").textContent = yes;
  question.returnValue = "no";
  question.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(question.returnValue === "yes");
    question.addEventListener("close", answer, { once: true });
  });
}
