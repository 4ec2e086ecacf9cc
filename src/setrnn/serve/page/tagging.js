// One document: the predictions and the decisions, without drawing.

import { ask, Problem } from "./api.js";
import { number, percent } from "./elements.js";

const N_SETS = 6; // the predicted set and its alternatives
const MAX_CHARACTERS = 40_000; // sent per text: models read far less
const CHARACTERS_PER_WORD = 32; // in a text without spaces, as the server counts
const BYTES_PER_CHARACTER = 8; // at most, including the rest of the request
const MAX_LABEL = 1000; // characters that the server accepts
const MAX_TREE = 10_000; // labels in the tree
const UNLIKELY = 0.001; // labels below are not listed
const RARER = 2; // times as probable is another set, where that is explained
const SURE = 0.05; // labels closer to 0 or 1 are not asked about

// The models and limits of the server, and the chosen model and rule.
export const server = { models: [], limits: null, model: null, rule: null };
// The tree of the chosen model's labels: label -> {count, parents, children}. Empty without one.
export const tree = { place: null, nodes: new Map(), roots: [], n_labels: 0 };
const known = new Map(); // "model\nlabel" -> whether the model has it
const WORD = /[^\s\x1c-\x1f\x85]+/g; // Python also splits at these

export class ReplacedError extends Problem {
  constructor() {
    super(500, "The model was replaced.");
  }
}

export async function loadModels() {
  const { models, limits } = await ask("v1/models");
  Object.assign(server, { models, limits });
  known.clear();
}

export function chooseModel(name, rule) {
  const { models } = server;
  server.model = models.find((each) => each.name === name) ?? models[0]; // the first is the default
  server.rule = server.model.rules.includes(rule) ? rule : server.model.own_rule;
}

// The rule to ask for. Without one, the model keeps to the sets that it finds plausible.
const askedRule = () => (server.rule === server.model.own_rule ? null : server.rule);

// Load the tree of the chosen model; return whether it has one.
export async function loadTree() {
  const { name, version, keeps_closed } = server.model;
  const place = keeps_closed === null ? null : `${name}\n${version}`;
  if (tree.place !== place) Object.assign(tree, { place: null, nodes: new Map(), roots: [], n_labels: 0 });
  if (place === null || tree.place === place) return place !== null;
  const { labels, n_matching } = await findLabels("", MAX_TREE, "tree");
  const nodes = new Map(labels.map((each) => [each.label, { ...each, children: [] }]));
  for (const { label, parents } of labels) for (const each of parents) nodes.get(each)?.children.push(label);
  const isRoot = ({ parents }) => !parents.some((each) => nodes.has(each));
  const branches = labels.filter(isRoot).map((each) => each.label);
  const isInner = (label) => nodes.get(label).children.length > 0;
  const roots = [...branches.filter(isInner), ...branches.filter((label) => !isInner(label))];
  Object.assign(tree, { place, nodes, roots, n_labels: n_matching });
  return true;
}

// All labels that `next` leads to from a label: those above or below it. None if sets need not be closed.
function reach(label, next) {
  const found = new Set();
  const waiting = server.model.keeps_closed ? [label] : [];
  while (waiting.length) {
    for (const each of tree.nodes.get(waiting.pop())?.[next] ?? []) {
      if (!found.has(each)) waiting.push(each);
      found.add(each);
    }
  }
  return found;
}

// Ask the chosen model; throw ReplacedError if the server has replaced it.
async function askModel(path, body, kind) {
  const { model } = server;
  let answer;
  try {
    answer = await ask(path, body, kind);
  } catch (error) {
    if (error.status === 422 && (await versionOf(model.name)) !== model.version) {
      throw new ReplacedError();
    }
    throw error;
  }
  if (answer.model.version !== model.version) throw new ReplacedError();
  return answer;
}

async function versionOf(name) {
  const { models } = await ask("v1/models");
  return models.find((each) => each.name === name)?.version;
}

// The part of a text that the server accepts, without half an emoji at its end.
function sent({ text }) {
  const { max_words, max_body_bytes } = server.limits;
  const limits = [MAX_CHARACTERS, CHARACTERS_PER_WORD * max_words, max_body_bytes / BYTES_PER_CHARACTER];
  const beginning = text.slice(0, Math.min(...limits)).replace(/[\uD800-\uDBFF]$/, "");
  let n = 0;
  for (const word of beginning.matchAll(WORD)) {
    n += 1;
    if (n === max_words) return beginning.slice(0, word.index + word[0].length);
  }
  return beginning;
}

const common = ({ text, features }) => ({
  text: sent({ text }),
  model: server.model.name,
  ...(features.length && { features }),
});

export async function predict(document) {
  const body = { ...tagBody([document]), top: N_SETS, marginals: true };
  const answer = await askModel("v1/tag", body, "tag");
  const [prediction] = answer.predictions;
  remember([...prediction.labels, ...prediction.marginals.map((each) => each.label)]);
  return prediction;
}

// Predict several documents of a queue. An empty text is never accepted without a look.
export async function guess(documents) {
  const { predictions } = await askModel("v1/tag", tagBody(documents), null);
  return predictions.map(({ labels, accepted, probability }, i) => {
    remember(labels);
    return { labels, accepted: accepted && documents[i].text.trim() !== "", probability };
  });
}

function tagBody(documents) {
  const features = documents.map((each) => each.features);
  return {
    texts: documents.map(sent),
    model: server.model.name,
    rule: askedRule(),
    ...(features.some((row) => row.length) && { features }),
  };
}

export async function complete(document, decision, kind) {
  const present = await knownOf(decision.present);
  const absent = await knownOf(decision.absent);
  if (!present.length && !absent.length) return null;
  const body = { ...common(document), present, absent, top: N_SETS };
  const completion = await askModel("v1/complete", body, kind);
  const suggestions = completion.suggestions.map(([label, probability]) => ({ label, probability }));
  remember(suggestions.map(({ label }) => label));
  return { ...completion, suggestions };
}

// Explain the predicted set, or a given one.
export async function explain(document, labels, kind) {
  const what = labels ? { labels } : { rule: askedRule() };
  const found = await askModel("v1/explain", { ...common(document), ...what }, kind);
  const words = wordsOf(found);
  const weigh = ({ weights, ...row }) => {
    const weighed = words.map(({ place, ...word }) => ({ ...word, weight: weights[place] }));
    return { ...row, words: weighed.filter(({ weight }) => weight) };
  };
  return { ...found, steps: found.steps.map(weigh), label_words: found.label_words.map(weigh) };
}

// The words that the model read, without stop words. The server counts characters; a string here
// may have two units per character.
function wordsOf({ text, words }) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  const isRead = ({ place, fate }) => place !== null && fate !== "stop word";
  return words.filter(isRead).map(({ fate, ...word }) => ({ ...word, start: units[word.start], stop: units[word.stop] }));
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

// Labels of a file or new labels may be unknown to the model: it is not asked about them.
async function knownOf(labels) {
  for (const label of labels.filter((each) => !known.has(place(each)))) {
    remember([label], await isKnown(label));
  }
  return labels.filter((label) => known.get(place(label)));
}

export async function newAmong(labels) {
  await knownOf(labels);
  return labels.filter(isNew);
}

async function isKnown(label) {
  if (label.length > MAX_LABEL) return false; // longer than the server accepts
  const found = await findLabels(label, 1000, null);
  return found.labels.some((each) => each.label === label);
}

// Decide about a label: "accepted", "rejected" or "open". If sets are closed, no label above an
// accepted one stays rejected, and none below a rejected one stays accepted.
export function decide(decision, label, state) {
  const without = (labels, others) => labels.filter((each) => each !== label && !others.has(each));
  const present = without(decision.present, state === "rejected" ? reach(label, "children") : new Set());
  const absent = without(decision.absent, state === "accepted" ? reach(label, "parents") : new Set());
  return {
    ...decision,
    present: state === "accepted" ? [...present, label] : present,
    absent: state === "rejected" ? [...absent, label] : absent,
    status: "open",
    labels: null,
  };
}

export function stateOf(decision, label) {
  if (decision.present.includes(label)) return "accepted";
  return decision.absent.includes(label) ? "rejected" : "open";
}

// All that is drawn of a document.
export function viewOf({ decision, prediction, completion, notes }) {
  const said = completion ?? prediction;
  const { present, absent } = decision;
  const isDone = decision.status === "done";
  const barred = new Set(absent.flatMap((label) => [label, ...reach(label, "children")]));
  const fitting = said.labels.filter((label) => !barred.has(label));
  const brought = present.flatMap((label) => [label, ...reach(label, "parents")]);
  const labels = isDone ? decision.labels : [...new Set([...fitting, ...brought])];
  const isOpen = ({ label }) => stateOf(decision, label) === "open";
  const likely = ({ probability }) => probability >= UNLIKELY;
  const rows = completion ? completion.suggestions.filter(isOpen).filter(likely) : prediction.marginals;
  // Labels that are accepted by themselves are not asked about, unless the person decides otherwise.
  const settled = (prediction.accepted_labels ?? []).filter(
    (label) => labels.includes(label) && stateOf(decision, label) === "open",
  );
  const isAsked = (row) => isOpen(row) && !settled.includes(row.label);
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
    probabilities: new Map(rows.map(({ label, probability }) => [label, probability])),
    stateOf: (label) => {
      const state = stateOf(decision, label);
      if (state === "open" && settled.includes(label)) return "settled";
      return state === "open" && labels.includes(label) ? "proposed" : state;
    },
    settledHint: settledHint(settled, labels),
    suggestion: isDone ? null : leastCertain(rows.filter(isAsked)),
    notes: [...notes, ...(prediction.notes ?? [])],
    alternatives: said.alternatives.filter(likely),
    probability: isSame ? said.probability : null,
    confidence: confidenceOf(decision, labels, prediction),
    rarerHint: isSame ? rarerHint(said) : "",
    isProved: !completion && prediction.certificate?.proved === true,
    isGiven: completion !== null,
    isFitting: completion ? completion.known_probability > 0 : null,
    knownProbability: completion ? completion.known_probability : null,
  };
}

// The most informative label: the one with the probability closest to one half.
function leastCertain(rows) {
  const doubt = ({ probability }) => Math.min(probability, 1 - probability);
  const [first] = rows.filter((row) => doubt(row) >= SURE).sort((a, b) => doubt(b) - doubt(a));
  return first ?? null;
}

export function cutHint({ text }, mostShown) {
  const n = sent({ text }).length;
  if (!text.slice(n).trim()) return "";
  const shown = text.length > mostShown ? `, the first ${number(mostShown)} are shown` : "";
  return `The model gets the first ${number(n)} of ${number(text.length)} characters${shown}.`;
}

export function ordersHint(decision) {
  const isDecided = decision.present.length > 0 || decision.absent.length > 0;
  const before = [server.model.is_calibrated && "calibration", isDecided && "your decisions"];
  const what = "Each block is one order in which the model emits the labels.";
  const first = isDecided ? " First the set shown, whose orders are listed, then the predicted sets." : "";
  const when = before.filter(Boolean).join(" and ");
  return `${what}${first}${when && ` Probabilities before ${when}.`}`;
}

function rowsHint(completion, prediction) {
  if (completion) return "Undecided labels, given your decisions (not calibrated).";
  const hints = [];
  const target = server.model.label_target;
  if (prediction.marginals.some((each) => each.accepted_from !== null)) {
    hints.push(`A label is settled (●) from the mark on its bar: right in at least ${asShare(target)} of cases.`);
  }
  if (!server.model.is_calibrated) hints.push("This model is not calibrated.");
  const missing = prediction.missing_mass ?? 0;
  const found = percent(1 - missing);
  if (missing > 0.05) hints.push(`The sets found have ${found} of the probability; the rest is estimated.`);
  return hints.join(" ");
}

function settledHint(settled, labels) {
  const target = server.model.label_target;
  if (!settled.length || !target) return "";
  const many = settled.length === labels.length ? "All labels are settled" : "Settled labels (●)";
  return `${many}: each is right in at least ${asShare(target)} of cases.`;
}

// Most rules do not go by the probability of the whole set.
function rarerHint({ probability, alternatives }) {
  const most = Math.max(0, ...alternatives.map((each) => each.probability));
  if (probability === 0 || most < RARER * probability) return ""; // if it is 0, a note says why
  const [own, other] = [probability, most].map(percent);
  return `${own} is for exactly these labels. Another set has ${other}: the rule does not go by the probability of whole sets.`;
}

export const asShare = (target) => percent(target).replace(".0%", "%");

function confidenceOf(decision, labels, { accepted }) {
  const { present, absent, status } = decision;
  if (status === "done") return { kind: "is-right", text: "done", why: "" };
  if (present.length || absent.length) {
    const n = labels.filter((label) => present.includes(label)).length;
    return { kind: "is-open", text: `${n} of ${labels.length} checked`, why: "" };
  }
  if (accepted === null) {
    const why = "Run setrnn calibrate on the model to know which sets need no review.";
    return { kind: "is-open", text: "no acceptance threshold", why };
  }
  const { target = null, threshold = null } = server.model.accepts[server.rule] ?? {};
  const often = target ? `in at least ${asShare(target)} of cases` : "as often as requested";
  if (accepted) {
    const from = threshold === null ? "Such sets" : `Sets of ${percent(threshold)} or more`;
    return { kind: "is-right", text: "accepted", why: `${from} are right ${often}, taken together.` };
  }
  const why = `The probability is too low to be right ${often}.`;
  return { kind: "is-part", text: "to be reviewed", why };
}
