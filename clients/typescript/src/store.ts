import { isObject } from "./errors.js";
import type { Frame } from "./frames.js";
import type { Block, Unavailable } from "./types.js";

/** What is known of a key. It is the same object until that changes. */
export interface Entry<T = unknown> {
  /** undefined while there is none. */
  readonly value: T | undefined;
  readonly seq: number;
  readonly rev: number;
  /** There may be a newer value, which cannot be had at the moment. why is the reason, where it was given. */
  readonly stale: boolean;
  readonly why: Unavailable | undefined;
}

/** One key of a store, to look at and to listen to. A store gives the same face of a key each time, and its functions need no `this`. */
export interface Face<T = unknown> {
  readonly key: string;
  /** The value, undefined for none. One that is equal to the one before is the same object. */
  readonly value: () => T | undefined;
  readonly entry: () => Entry<T> | undefined;
  /** Has f called when the key has changed. The function that it gives ends that. */
  readonly subscribe: (f: () => void) => () => void;
}

/** An entry with its rank. A gone row is a tombstone. */
interface Row {
  readonly epoch: string;
  readonly gone: boolean;
  readonly entry: Entry;
}

/**
 * Holds the latest values of one session, whatever order they come in: from a stream, from reads, from appends. What it ends with does not depend on it.
 *
 * - A value has an epoch, a revision and a seq, and is newer by the first of them that differs; an equal one is not newer. What is not newer is dropped, and nobody is told.
 * - An epoch is `<storeId>.<boot>`. Of the same store the higher boot is newer; of two stores the one that was connected to last.
 * - A whole block of a newer epoch replaces everything. In the same epoch each key that it carries is taken if it is newer; a key that it neither carries nor calls unavailable is removed,
 *   unless its seq is above that of the block; and a block of a lower generation neither adds nor removes keys. A block of an older epoch, or of another time than now, says nothing.
 * - A partial block (a list, an append, chosen keys) is the same without removing. If its epoch is newer, the values that it does not carry are stale.
 * - A key that is unavailable keeps its value, marked stale, unless the value is newer than that. In a newer epoch it has none. The next value that is newer, or the same
 *   one again, is fresh.
 * - A removed key leaves a mark of its revision, so that what is not newer does not bring it back.
 * - A connection to another start of the server drops values above the end of the log as it is now, since their events may be lost. Another incarnation of the session drops everything, and so does a
 *   reset for that reason. Blocks do not name theirs: the server gives what is of a later incarnation higher revisions.
 *
 * What is read is always what came last. Listeners are told in a microtask, once of everything that changed until then.
 */
export class Store {
  readonly #rows = new Map<string, Row>();
  readonly #faces = new Map<string, Face>();
  readonly #listeners = new Set<(keys: string[]) => void>();
  readonly #keyListeners = new Map<string, Set<() => void>>();
  readonly #changed = new Set<string>();
  /** The newest that anything is of, and the highest generation of it. */
  #epoch = "";
  #gen = -1;
  /** Those of the last connection. */
  #connected = "";
  #incarnation = "";
  #lastSeq = -1;
  /** What values gives, undefined once it is not true any more. */
  #values: Readonly<Record<string, unknown>> | undefined;

  /** What is known of a key; undefined when there is no such key. */
  get<T = unknown>(key: string): Entry<T> | undefined {
    const row = this.#there(key);
    return row?.entry as Entry<T> | undefined;
  }

  /** The value of a key, stale or not; undefined when there is none. */
  value<T = unknown>(key: string): T | undefined {
    return this.get<T>(key)?.value;
  }

  /** All values, stale ones too. Until something changes it is the same object. It has no prototype. */
  values(): Readonly<Record<string, unknown>> {
    if (this.#values === undefined) {
      const values = Object.create(null) as Record<string, unknown>;
      for (const [key, row] of this.#rows) {
        if (!row.gone && row.entry.value !== undefined) values[key] = row.entry.value;
      }
      this.#values = Object.freeze(values);
    }
    return this.#values;
  }

  /** One key, to look at and to listen to, whether or not there is anything of it yet. */
  face<T = unknown>(key: string): Face<T> {
    let face = this.#faces.get(key);
    if (face === undefined) {
      face = Object.freeze({
        key,
        value: () => this.value(key),
        entry: () => this.get(key),
        subscribe: (f: () => void) => this.subscribe(key, f),
      });
      this.#faces.set(key, face);
    }
    return face as Face<T>;
  }

  /** Has f called when a key has changed. The function that it gives ends that. */
  subscribe(key: string, f: () => void): () => void {
    // Its own, so that one function that is given twice is called twice, and each end ends one.
    const listener = (): void => f();
    let all = this.#keyListeners.get(key);
    if (all === undefined) this.#keyListeners.set(key, (all = new Set()));
    all.add(listener);
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#keyListeners.get(key) === all) this.#keyListeners.delete(key);
    };
  }

  /** Has f called with the keys, sorted, that have changed. It says that they changed and not to what: that is to be read. The function that it gives ends that. */
  onChange(f: (keys: string[]) => void): () => void {
    const listener = (keys: string[]): void => f(keys);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Begins a connection, as a SubscribedFrame says it. A new life of the session voids everything; a new start of the server what is above its log's end, because it may have been lost. */
  connect(epoch: string, incarnation: string, lastSeq: number): void {
    const another = this.#incarnation !== "" && this.#incarnation !== incarnation;
    const restarted = (this.#connected !== "" && this.#connected !== epoch) || (this.#epoch !== "" && this.#epoch !== epoch);
    this.#connected = epoch;
    this.#incarnation = incarnation;
    this.#lastSeq = lastSeq;
    if (another) this.clear();
    else if (restarted) this.truncate(lastSeq);
  }

  /** Takes a value, if it is newer. */
  apply(epoch: string, key: string, value: unknown, seq: number, rev: number): void {
    this.#reach(epoch, -1);
    this.#apply(epoch, key, value, seq, rev);
  }

  /** Takes all values at once: a block of all keys, as a baseline or a read without keys gives it. What is of another time is left alone. */
  seed(block: Readonly<Block>): void {
    if (block.historical) return;
    const order = this.#compareEpochs(this.#epoch, block.epoch);
    if (order > 0) this.#renew(block);
    else if (order === 0) this.#merge(block, false);
  }

  /** Takes some values: a block of a list, of an append, or of chosen keys. It removes none. */
  seedPartial(block: Readonly<Block>): void {
    if (block.historical) return;
    this.#reach(block.epoch, block.gen);
    if (this.#compareEpochs(this.#epoch, block.epoch) === 0) this.#merge(block, true);
  }

  /** Marks a value stale, unless it is newer than that. */
  unavailable(epoch: string, key: string, why: Readonly<Unavailable>, rev: number): void {
    this.#reach(epoch, -1);
    if (this.#compareEpochs(this.#epoch, epoch) !== 0) return;
    const row = this.#rows.get(key);
    if (row === undefined) {
      this.#set(key, { epoch, gone: false, entry: { value: undefined, seq: -1, rev, stale: true, why } });
    } else if (!row.gone && !(row.epoch === epoch && (row.entry.rev > rev || (row.entry.rev === rev && row.entry.seq > why.seq)))) {
      this.#stale(key, row, why);
    }
  }

  /** Takes a key away whose unit is gone. It leaves a mark, so that what is older does not bring it back. */
  remove(epoch: string, key: string, rev: number): void {
    this.#reach(epoch, -1);
    const row = this.#rows.get(key);
    if (this.#compareEpochs(this.#epoch, epoch) !== 0 || (row !== undefined && row.epoch === epoch && row.entry.rev > rev)) return;
    if (row !== undefined && !row.gone) this.#note(key);
    this.#rows.set(key, tombstone(epoch, Infinity, rev));
  }

  /** Drops values above a seq: when the log turns out to be shorter than it was. */
  truncate(lastSeq: number): void {
    for (const [key, row] of this.#rows) {
      if (!row.gone && row.entry.seq > lastSeq) {
        this.#rows.delete(key);
        this.#note(key);
      }
    }
  }

  /** Drops everything: when the session is gone. */
  clear(): void {
    for (const [key, row] of this.#rows) {
      if (!row.gone) this.#note(key);
    }
    this.#rows.clear();
    this.#gen = -1;
  }

  /** Takes what a frame of a stream says. partial says that the stream is one of chosen keys, so that its baselines are not all there is. Events say nothing about values. */
  take(frame: Frame, partial = false): void {
    const epoch = this.#connected;
    switch (frame.type) {
      case "session/subscribed":
        this.connect(frame.epoch, frame.incarnation, frame.lastSeq);
        break;
      case "session/reset":
        // Another life, also where this store was never connected to the one before. What is damaged, so only not to be read at the moment, is as it was.
        if (frame.reason === "incarnation") this.clear();
        else if (frame.reason !== "damaged") this.truncate(this.#lastSeq);
        break;
      case "session/baseline":
        if (partial) this.seedPartial(frame);
        else this.seed(frame);
        break;
      case "session/projection":
        this.apply(epoch, frame.key, frame.value, frame.seq, frame.rev);
        break;
      case "session/projection-unavailable":
        this.unavailable(epoch, frame.key, { code: frame.code, seq: frame.seq, message: frame.message }, frame.rev);
        break;
      case "session/projection-removed":
        this.remove(epoch, frame.key, frame.rev);
        break;
      case "session/deleted":
        this.clear();
        break;
      default:
    }
  }

  #there(key: string): Row | undefined {
    const row = this.#rows.get(key);
    return row === undefined || row.gone ? undefined : row;
  }

  /** Whether b is newer than a (1), the same (0) or older (−1). */
  #compareEpochs(a: string, b: string): number {
    if (a === b) return 0;
    const [storeA, bootA] = cut(a);
    const [storeB, bootB] = cut(b);
    if (storeA === storeB) return Number(bootB) > Number(bootA) ? 1 : -1;
    // Starts of different stores have no order but that in which they were connected to. Who never connected takes what comes.
    return this.#connected === "" || storeB === cut(this.#connected)[0] || a === "" ? 1 : -1;
  }

  /** Whether a value of this rank takes the place of a row. One of the same rank is the same value: there is news in it only where the row is stale. */
  #newer(row: Row | undefined, epoch: string, rev: number, seq: number): boolean {
    if (row === undefined) return true;
    const order = this.#compareEpochs(row.epoch, epoch);
    if (order !== 0) return order > 0;
    return rev > row.entry.rev || (rev === row.entry.rev && (seq > row.entry.seq || (seq === row.entry.seq && row.entry.stale)));
  }

  #apply(epoch: string, key: string, value: unknown, seq: number, rev: number): void {
    const row = this.#rows.get(key);
    if (!this.#newer(row, epoch, rev, seq)) return;
    this.#set(key, { epoch, gone: false, entry: { value: kept(row, value), seq, rev, stale: false, why: undefined } });
  }

  /** Notes a newer epoch, in which nothing is known yet of what is there: it is stale. */
  #reach(epoch: string, gen: number): void {
    if (this.#compareEpochs(this.#epoch, epoch) <= 0) return;
    this.#epoch = epoch;
    this.#gen = gen;
    for (const [key, row] of this.#rows) {
      if (!row.gone && !row.entry.stale) this.#mark(key, row, undefined);
    }
  }

  /** Puts a block of a newer epoch in the place of everything. */
  #renew(block: Readonly<Block>): void {
    const old = new Map(this.#rows);
    this.#rows.clear();
    this.#epoch = block.epoch;
    this.#gen = block.gen;
    for (const [key, value] of Object.entries(block.values)) {
      this.#set(key, { epoch: block.epoch, gone: false, entry: { value: kept(old.get(key), value), seq: block.asOfSeq, rev: revOf(block, key), stale: false, why: undefined } });
    }
    for (const [key, why] of Object.entries(block.unavailable ?? {})) {
      this.#set(key, { epoch: block.epoch, gone: false, entry: { value: undefined, seq: -1, rev: 0, stale: true, why } });
    }
    for (const [key, row] of old) {
      if (!row.gone) this.#note(key);
    }
  }

  /** Takes a block of the same epoch. */
  #merge(block: Readonly<Block>, partial: boolean): void {
    const old = block.gen < this.#gen;
    const unavailable = block.unavailable ?? {};
    this.#gen = Math.max(this.#gen, block.gen);
    for (const [key, value] of Object.entries(block.values)) {
      if (!old || this.#there(key) !== undefined) this.#apply(block.epoch, key, value, block.asOfSeq, revOf(block, key));
    }
    for (const [key, why] of Object.entries(unavailable)) {
      const row = this.#rows.get(key);
      if (row === undefined) {
        if (!old) this.#set(key, { epoch: block.epoch, gone: false, entry: { value: undefined, seq: -1, rev: 0, stale: true, why } });
      } else if (!row.gone && !beyond(row, block)) {
        this.#stale(key, row, why);
      }
    }
    if (partial || old) return;
    for (const [key, row] of this.#rows) {
      if (row.gone || Object.hasOwn(block.values, key) || Object.hasOwn(unavailable, key) || beyond(row, block)) continue;
      // What the block is older than may come still, and may bring it back; what is older than the block may not.
      this.#rows.set(key, tombstone(block.epoch, block.asOfSeq, row.entry.rev));
      this.#note(key);
    }
  }

  /** Marks a row, unless it is marked like that already. */
  #stale(key: string, row: Row, why: Readonly<Unavailable>): void {
    const { stale, why: known } = row.entry;
    if (stale && known !== undefined && known.code === why.code && known.seq === why.seq && known.message === why.message) return;
    this.#mark(key, row, why);
  }

  #mark(key: string, row: Row, why: Readonly<Unavailable> | undefined): void {
    this.#set(key, { ...row, entry: { ...row.entry, stale: true, why } });
  }

  #set(key: string, row: Row): void {
    this.#rows.set(key, { ...row, entry: Object.freeze(row.entry) });
    this.#note(key);
  }

  #note(key: string): void {
    this.#values = undefined;
    if (this.#changed.size === 0) queueMicrotask(() => this.#tell());
    this.#changed.add(key);
  }

  #tell(): void {
    const keys = [...this.#changed].sort();
    this.#changed.clear();
    const all = [...this.#listeners].map((f) => () => f(keys));
    for (const key of keys) all.push(...(this.#keyListeners.get(key) ?? []));
    for (const f of all) {
      try {
        f();
      } catch (err) {
        // It is not to keep the news from the others. The platform reports it as that of any callback.
        queueMicrotask(() => {
          throw err;
        });
      }
    }
  }
}

function cut(epoch: string): [store: string, boot: string] {
  const dot = epoch.indexOf(".");
  return dot < 0 ? [epoch, ""] : [epoch.slice(0, dot), epoch.slice(dot + 1)];
}

function tombstone(epoch: string, seq: number, rev: number): Row {
  return { epoch, gone: true, entry: { value: undefined, seq, rev, stale: false, why: undefined } };
}

/** Whether a row is newer than a block, which has no revision for it. */
function beyond(row: Row, block: Readonly<Block>): boolean {
  return row.epoch === block.epoch && row.entry.seq > block.asOfSeq;
}

function revOf(block: Readonly<Block>, key: string): number {
  return Object.hasOwn(block.revs, key) ? (block.revs[key] ?? 0) : 0;
}

/** The value that is kept: the one that there is when the new one is equal to it, so that what is drawn of it is not drawn again. */
function kept(row: Row | undefined, value: unknown): unknown {
  return row !== undefined && !row.gone && equal(row.entry.value, value) ? row.entry.value : value;
}

/** Whether two values of JSON are equal, in any order of fields. */
function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => equal(v, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]));
}
