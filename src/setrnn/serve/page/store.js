// What must outlive a reload: documents, what was decided of each, and the queue.
// It is in IndexedDB, as a queue may be larger than localStorage holds.

const NAME = "setrnn";
const TABLES = ["documents", "decisions", "settings"];

const finished = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function opened() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => TABLES.forEach((table) => request.result.createObjectStore(table));
  return finished(request);
}

// Without IndexedDB (some private windows) the page works, and keeps nothing.
export async function openStore() {
  try {
    return inDatabase(await opened());
  } catch {
    return inMemory();
  }
}

function inDatabase(database) {
  const table = (name, mode = "readonly") => database.transaction(name, mode).objectStore(name);
  const written = (name, change) =>
    new Promise((resolve, reject) => {
      const store = table(name, "readwrite");
      store.transaction.oncomplete = () => resolve();
      store.transaction.onerror = () => reject(store.transaction.error);
      store.transaction.onabort = () => reject(store.transaction.error);
      change(store);
    });
  return {
    isKept: true,
    get: (name, key) => finished(table(name).get(key)),
    range: (name, from, to) => finished(table(name).getAll(IDBKeyRange.bound(from, to))),
    put: (name, key, value) => written(name, (store) => store.put(value, key)),
    putAll: (name, values) =>
      written(name, (store) => values.forEach((value, key) => store.put(value, key))),
    clear: (name) => written(name, (store) => store.clear()),
  };
}

function inMemory() {
  const tables = Object.fromEntries(TABLES.map((name) => [name, new Map()]));
  return {
    isKept: false,
    get: async (name, key) => tables[name].get(key),
    range: async (name, from, to) =>
      [...tables[name]].filter(([key]) => key >= from && key <= to).map(([, value]) => value),
    put: async (name, key, value) => tables[name].set(key, value),
    putAll: async (name, values) => values.forEach((value, key) => tables[name].set(key, value)),
    clear: async (name) => tables[name].clear(),
  };
}
