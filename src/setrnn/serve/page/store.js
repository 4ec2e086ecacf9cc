// What must survive a reload: documents, decisions, and the queue. They are in IndexedDB, as a queue
// may be larger than localStorage. Only the tab with the latest claim may write. After a failed
// write, everything is kept in memory.

const NAME = "setrnn";
const TABLES = ["documents", "decisions", "settings"];
const N_CLAIMS = 1000; // claims that are remembered
const ALL = "all";

const finished = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

// Open the store. It calls `tell.lost(error)` when nothing is stored from now on (`error` is null if
// nothing ever was), and `tell.elsewhere()` when another tab has claimed the documents.
export async function openStore(tell) {
  const memory = inMemory();
  const database = await openDatabase().catch(() => null);
  const waiting = new Map(); // pending writes: the newest change per place
  let kept = database; // null while everything is in memory
  let moving = null;
  if (database === null) tell.lost(null);
  else hearOfClaims(database.claim, () => kept && tell.elsewhere());

  async function intoMemory() {
    await database.copyTo(memory).catch(() => {}); // what cannot be read is already lost
    for (const change of waiting.values()) memory.write(change);
    waiting.clear();
  }

  async function write(place, change) {
    if (kept === null) {
      await moving;
      memory.write(change);
      return undefined;
    }
    if (place === ALL) waiting.clear();
    waiting.delete(place); // the newest comes last
    waiting.set(place, change);
    try {
      await kept.write(change);
    } catch (error) {
      if (error?.name === "ConstraintError") return stop();
      if (kept !== null) {
        kept = null;
        moving = intoMemory();
        tell.lost(error);
      }
      return moving;
    }
    if (waiting.get(place) === change) waiting.delete(place);
    return undefined;
  }

  // The other tab continues: pending writes of this one never finish.
  function stop() {
    if (!memory.isEmpty()) kept = null;
    tell.elsewhere();
    return new Promise(() => {});
  }

  async function readable() {
    await moving;
    return kept ?? memory;
  }

  return {
    isKept: () => kept !== null,
    get: async (name, key) => (await readable()).get(name, key),
    range: async (name, from, to) => (await readable()).range(name, from, to),
    put: (name, key, value) => write(`${name} ${key}`, (table) => table(name).put(value, key)),
    putAll: (name, entries) =>
      write(`${name} ${entries.map(([key]) => key)}`, (table) => {
        for (const [key, value] of entries) table(name).put(value, key);
      }),
    // All or nothing: a queue is never half old and half new.
    replace: (tables) => write(ALL, filling(tables)),
    // Store what is in memory; return whether that worked.
    async keepAgain() {
      await moving;
      kept = database;
      await write(ALL, filling(memory.all()));
      if (kept !== null) memory.write(filling({}));
      return kept !== null;
    },
  };
}

// A change that replaces all entries: {table: [[key, value], ...]}.
const filling = (tables) => (table) => {
  for (const name of TABLES) {
    table(name).clear();
    for (const [key, value] of tables[name] ?? []) table(name).put(value, key);
  }
};

function hearOfClaims(claim, later) {
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }) => data > claim && later();
  channel.postMessage(claim);
}

async function openDatabase() {
  const request = indexedDB.open(NAME, 2);
  request.onupgradeneeded = () => {
    const { result } = request;
    for (const table of [...TABLES, "claims"]) {
      if (!result.objectStoreNames.contains(table)) result.createObjectStore(table);
    }
  };
  const database = await finished(request);
  database.onversionchange = () => database.close();
  return inDatabase(database, await claimed(database));
}

// Claims are consecutive numbers: a tab that finds the next one taken may not write.
async function claimed(database) {
  const table = database.transaction("claims", "readwrite").objectStore("claims");
  const latest = await finished(table.openKeyCursor(null, "prev"));
  const claim = (latest?.key ?? 0) + 1;
  table.delete(IDBKeyRange.upperBound(claim - N_CLAIMS));
  await finished(table.add(true, claim));
  return claim;
}

function inDatabase(database, claim) {
  const table = (name) => database.transaction(name).objectStore(name);

  // Commit at once, so that the change survives if the tab is closed now.
  function write(change) {
    return new Promise((resolve, reject) => {
      const transaction = database.transaction([...TABLES, "claims"], "readwrite");
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      try {
        const claims = transaction.objectStore("claims");
        claims.add(true, claim + 1); // fails with the whole transaction if it exists
        claims.delete(claim + 1);
        change((name) => transaction.objectStore(name));
        transaction.commit?.();
      } catch (error) {
        reject(error);
        transaction.abort();
      }
    });
  }

  async function copyTo(memory) {
    const tables = {};
    for (const name of TABLES) {
      const keys = await finished(table(name).getAllKeys());
      const values = await finished(table(name).getAll());
      tables[name] = keys.map((key, i) => [key, values[i]]);
    }
    memory.write(filling(tables));
  }

  return {
    claim,
    write,
    copyTo,
    get: (name, key) => finished(table(name).get(key)),
    range: (name, from, to) => finished(table(name).getAll(IDBKeyRange.bound(from, to))),
  };
}

function inMemory() {
  const tables = Object.fromEntries(TABLES.map((name) => [name, new Map()]));
  const table = (name) => ({
    put: (value, key) => tables[name].set(key, value),
    clear: () => tables[name].clear(),
  });
  return {
    isEmpty: () => Object.values(tables).every((each) => each.size === 0),
    all: () => Object.fromEntries(TABLES.map((name) => [name, [...tables[name]]])),
    write: (change) => change(table),
    get: (name, key) => tables[name].get(key),
    range: (name, from, to) =>
      [...tables[name]]
        .filter(([key]) => key >= from && key <= to)
        .sort(([a], [b]) => a - b)
        .map(([, value]) => value),
  };
}
