// One document: what the model says of it and what the person decided; no drawing here.

import { ask } from "./api.js";
import { number, percent } from "./elements.js";

const N_SETS = 6; // the predicted one and its alternatives
const MOST_CHARACTERS = 40_000; // of a text that are sent: models read far less
const UNLIKELY = 0.001; // labels below it are not listed

// What the server offers, and what was chosen of it.
export const server = { models: [], model: null, rule: null };
const known = new Map(); // "model\nlabel" -> whether the model has it

export async function loadModels() {
  server.models = (await ask("v1/models")).models;
}

export function chooseModel(name, rule) {
  const { models } = server;
  server.model =
    models.find((each) => each.name === name) ?? models.find((each) => each.is_default) ?? models[0];
  server.rule = server.model.rules.includes(rule) ? rule : server.model.own_rule;
}

// The beginning of a long text, without half an emoji at its end.
export const isCut = ({ text }) => text.length > MOST_CHARACTERS;
const sent = ({ text }) => text.slice(0, MOST_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "");

const common = ({ text, features }) => ({
  text: sent({ text }),
  model: server.model.name,
  ...(features.length && { features }),
});

export async function predict(document) {
  const answer = await ask("v1/tag", { ...tagBody([document]), top: N_SETS, marginals: true }, "tag");
  const [prediction] = answer.predictions;
  remember([...prediction.labels, ...prediction.marginals.map((each) => each.label)]);
  return prediction;
}

// What the model makes of several documents, for the order of a queue.
export async function guess(documents) {
  const { predictions } = await ask("v1/tag", tagBody(documents));
  return predictions.map(({ accepted, probability }) => ({ accepted, probability }));
}

function tagBody(documents) {
  const features = documents.map((each) => each.features);
  return {
    texts: documents.map(sent),
    model: server.model.name,
    rule: server.rule,
    ...(features.some((row) => row.length) && { features }),
  };
}

export async function complete(document, decision, kind) {
  const present = await knownOf(decision.present);
  const absent = await knownOf(decision.absent);
  if (!present.length && !absent.length) return null;
  const body = { ...common(document), present, absent, top: N_SETS };
  const completion = await ask("v1/complete", body, kind);
  remember(completion.suggestions.map((each) => each.label));
  return completion;
}

// What the model predicts, or makes of a set that is given.
export function explain(document, labels, kind) {
  const what = labels ? { labels } : { rule: server.rule === "sequence" ? "sequence" : "set" };
  return ask("v1/explain", { ...common(document), ...what }, kind);
}

export function findLabels(prefix, limit = 8, kind = "labels") {
  const query = new URLSearchParams({ prefix, limit, model: server.model.name });
  return ask(`v1/labels?${query}`, null, kind);
}

const place = (label) => `${server.model.name}\n${label}`;
export function remember(labels, isKnown = true) {
  for (const label of labels) known.set(place(label), isKnown);
}
export const isNew = (label) => known.get(place(label)) === false;

// Labels of a file, or typed anew, may be none of the model's: it is not asked about those.
async function knownOf(labels) {
  for (const label of labels.filter((each) => !known.has(place(each)))) {
    const found = await findLabels(label, 1000, null);
    remember([label], found.labels.some((each) => each.label === label));
  }
  return labels.filter((label) => known.get(place(label)));
}

// Decide about a label: "accepted", "rejected" or "open".
export function decide(decision, label, state) {
  const without = (labels) => labels.filter((each) => each !== label);
  return {
    ...decision,
    present: state === "accepted" ? [...without(decision.present), label] : without(decision.present),
    absent: state === "rejected" ? [...without(decision.absent), label] : without(decision.absent),
    status: "open",
    labels: null,
  };
}

export function stateOf(decision, label) {
  if (decision.present.includes(label)) return "accepted";
  return decision.absent.includes(label) ? "rejected" : "open";
}

// All that is drawn of a document.
export function viewOf({ decision, prediction, completion }) {
  const said = completion ?? prediction;
  const { present, absent } = decision;
  const isDone = decision.status === "done";
  const fitting = said.labels.filter((label) => !absent.includes(label));
  const labels = isDone ? decision.labels : [...new Set([...fitting, ...present])];
  const isOpen = ({ label }) => stateOf(decision, label) === "open";
  const likely = ({ probability }) => probability >= UNLIKELY;
  const rows = completion ? completion.suggestions.filter(isOpen).filter(likely) : prediction.marginals;
  const n = new Set([...labels, ...said.labels]).size;
  const isSame = n === labels.length && n === said.labels.length;
  return {
    labels,
    present,
    absent,
    isDone,
    isNew,
    rows,
    rowsHint: rowsHint(completion, prediction),
    stateOf: (label) => {
      const state = stateOf(decision, label);
      return state === "open" && labels.includes(label) ? "proposed" : state;
    },
    suggestion: isDone ? null : (rows.find(isOpen) ?? null),
    alternatives: said.alternatives.filter(likely),
    probability: isSame ? said.probability : null,
    confidence: confidenceOf(decision, labels, prediction),
    isProved: !completion && prediction.certificate?.proved === true,
    isFitting: completion ? completion.known_probability > 0 : null,
    knownProbability: completion ? completion.known_probability : null,
  };
}

export function cutHint({ text }, mostShown) {
  const shown = text.length > mostShown ? `, the first ${number(mostShown)} are shown` : "";
  const all = `of ${number(text.length)} characters`;
  return `The model is given the first ${number(MOST_CHARACTERS)} ${all}${shown}.`;
}

export function ordersHint(decision) {
  const isDecided = decision.present.length > 0 || decision.absent.length > 0;
  const before = [server.model.is_calibrated && "calibration", isDecided && "your decisions"];
  const what = "Each block is one order in which the model writes the labels.";
  const first = isDecided ? " First the set as it is shown, whose orders are listed, then those predicted." : "";
  const when = before.filter(Boolean).join(" and ");
  return `${what}${first}${when && ` Probabilities before ${when}.`}`;
}

function rowsHint(completion, prediction) {
  if (completion) return "The labels you have not decided about, given those you have.";
  const missing = prediction.missing_mass ?? 0;
  return missing > 0.05 ? `From sets that have ${percent(1 - missing)} of the probability.` : "";
}

const asShare = (target) => percent(target).replace(".0%", "%");

function confidenceOf(decision, labels, { accepted }) {
  const { present, absent, status } = decision;
  if (status === "done") return { kind: "is-right", text: "done", why: "" };
  if (present.length || absent.length) {
    const n = labels.filter((label) => present.includes(label)).length;
    return { kind: "is-open", text: `${n} of ${labels.length} checked`, why: "" };
  }
  if (accepted === null) {
    const why = "To know which sets need no second look, run setrnn calibrate on the model.";
    return { kind: "is-open", text: "no acceptance known", why };
  }
  const target = server.model.accepts[server.rule]?.target;
  const often = target ? `in ${asShare(target)} of cases or more` : "as often as was asked for";
  if (accepted) {
    return { kind: "is-right", text: "accepted", why: `Sets as sure as this one are right ${often}.` };
  }
  const why = `Not as sure as it must be to be right ${often}.`;
  return { kind: "is-part", text: "to be reviewed", why };
}
