// The choice of the model and of its prediction rule.

import { keepNote, noteOf } from "./desk.js";
import { at, count, make } from "./elements.js";
import { chooseModel, loadModels, server } from "./tagging.js";
import { showTree } from "./tree.js";

const KEPT = "setrnn-choice";
const RULES = {
  set: "most probable set",
  sequence: "best sequence",
  f1: "best expected F1",
  hamming: "labels above 50%",
  "micro-f1": "one threshold",
  "label-f1": "a threshold per label",
};

const choice = keptChoice();

function keptChoice() {
  try {
    return { ...JSON.parse(noteOf("localStorage", KEPT)) };
  } catch {
    return {}; // it is damaged
  }
}

// Load the models of the server once.
export async function ready() {
  if (server.model) return;
  await loadModels();
  chooseModel(choice.model, choice.rule);
  drawChoosers();
  await showTree();
}

// Load the models again: the server has replaced one.
export async function refresh() {
  const { model, rule } = server;
  await loadModels();
  chooseModel(model.name, rule);
  drawChoosers();
  await showTree();
}

export async function choose(name, rule) {
  const before = server.model;
  chooseModel(name, rule);
  Object.assign(choice, { model: server.model.name, rule: server.rule });
  keepNote("localStorage", KEPT, JSON.stringify(choice));
  drawChoosers();
  if (server.model !== before) await showTree();
}

function drawChoosers() {
  const { models, model, rule } = server;
  const options = (names, chosen) =>
    names.map((name) => make("option", { value: name, textContent: name, selected: name === chosen }));
  at("model").replaceChildren(...options(models.map((each) => each.name), model.name));
  at("model-field").hidden = models.length < 2;
  at("rule").replaceChildren(...options(model.rules, rule));
  for (const option of at("rule").options) option.textContent += `: ${RULES[option.value] ?? ""}`;
  const data = model.data ? `, trained on ${model.data}` : "";
  at("about").textContent = `${model.method}, ${count(model.n_labels, "label")}${data}`;
  at("about").title = `${model.name}, version ${model.version}`;
  at("warnings").replaceChildren(...model.warnings.map((each) => make("p", { textContent: each })));
  at("warnings").hidden = !model.warnings.length;
}
