// Small things that outlive a reload, or the tab; where the browser refuses, the page.

const held = new Map();

export function noteOf(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return held.get(name) ?? null;
  }
}

export function keepNote(storage, name, value) {
  try {
    window[storage].setItem(name, value);
  } catch {
    held.set(name, value);
  }
}
