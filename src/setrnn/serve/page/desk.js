// What lies on the desk: the parts of the page share it.

export const PASTED = "pasted"; // the key of the one document that is in no queue

export const desk = {
  store: null, // see store.js
  queue: null, // see queue.js
  current: null, // the document at hand, see current.js
  isAtRisk: false, // whether something was decided since the last export
  isElsewhere: false, // whether another tab has taken over
};
