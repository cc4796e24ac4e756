/** One entry of a log. */
export interface Event<Data = unknown> {
  type: string;
  /** The index in the log: without gaps from 0, for ever. */
  seq: number;
  /** In milliseconds since the epoch. It may go back. */
  time: number;
  /** Numbers beyond 2^53 lose digits in JavaScript; whoever needs them reads the `json` of a frame, or an export. */
  data: Data;
  surfaceOp?: SurfaceOp;
  /** The seqs of the events that it was made from. */
  sourceEventSeqs?: number[];
  /** A reader that does not know the type may skip it. */
  ignorable?: boolean;
}

/** What an event does to the surface: it stands at its end, or in the place of the nodes from start to end. */
export type SurfaceOp = "append" | { op: "replace"; start: number; end: number };

/** An event to be appended. The log gives it its seq, and without a time the clock of the server its time. */
export interface Item<Data = unknown> {
  type: string;
  /** Missing is null. */
  data?: Data;
  time?: number;
  surfaceOp?: SurfaceOp;
  sourceEventSeqs?: number[];
  ignorable?: boolean;
}

/** An event that is JSON already; see rawItem. */
export class RawItem {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

/** An event that is JSON already, such as `{"type":"note","data":{}}`, which is sent as it stands: for data with numbers that JavaScript does not have. The server says what is wrong with it. */
export function rawItem(json: string): RawItem {
  JSON.parse(json); // What is no JSON would spoil the request as a whole.
  return new RawItem(json);
}

/** The first line of a log. There may be more fields. */
export interface Header {
  version: number;
  id: string;
  /** In milliseconds since the epoch. */
  createdAt: number;
  cwd?: string;
  parentSession?: string;
  seedLength?: number;
  origin?: "subagent";
  delegationDepth?: number;
  agentPreset?: string;
  [more: string]: unknown;
}

/** What there is to know about a session without reading its log. */
export interface Session {
  header: Header;
  /** The length of the log, which is the seq that the next event gets. */
  seq: number;
  /** The first event that is not of the seed. */
  firstLiveSeq: number;
  /** Names this life of the id: a session that is deleted and made again has another. */
  incarnation: string;
  /** The server holds it open; reading makes none live. */
  live: boolean;
  /** When the last commit was, in milliseconds since the epoch. */
  updatedAt: number;
  /** Values, where a list has them. */
  projections?: Block;
}

/** How values come: all of them as of one seq. */
export interface Block {
  /** `<storeId>.<boot>`. */
  epoch: string;
  /** Counts changes of registrations in the epoch. */
  gen: number;
  /** The last event that the values contain, −1 for the empty log. */
  asOfSeq: number;
  /** The values are those of another time than now. */
  historical?: boolean;
  values: Record<string, unknown>;
  /** The revision of each value. */
  revs: Record<string, number>;
  /** The keys that have no value as of asOfSeq, and why. */
  unavailable?: Record<string, Unavailable>;
}

/** Why a key has no value. */
export interface Unavailable {
  code: "starting" | "restarting" | "parked" | "faulted" | "behind" | (string & {});
  /** What the unit reached, −1 for nothing. */
  seq: number;
  message: string;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call, which rejects with the signal's reason, and waiting to send it again. */
  signal?: AbortSignal | undefined;
}

/** Makes a request that writes safe to repeat, for as long as the server remembers keys: the same request with the same key is done once, and gives the first answer. */
export interface Once extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Without one the client makes one up for each call, so that what it sends again after a break is not done twice. null sends none, and then nothing again.
   * A program that must not write twice even if it is started anew keeps the key with what it writes, and gives it here.
   */
  idempotencyKey?: string | null | undefined;
}

export interface NewSession extends Once {
  /** Without one the server makes one up. */
  id?: string | undefined;
  /** An absolute path. */
  cwd?: string | undefined;
  /** The set of plugins that serves it; the default set without. One that there is not is a preset-unknown. */
  preset?: string | undefined;
  /** In milliseconds since the epoch; now, without. */
  createdAt?: number | undefined;
  /** A seed: what follows it is the session's own. */
  events?: readonly (Item | RawItem)[] | undefined;
}

/** created is false when a session of the id was there already, to which all that was given is equal. */
export interface Created extends Session {
  created: boolean;
}

export interface ListQuery extends CallOptions {
  /** How many sessions a page has: 50 without, 1,000 at most. */
  limit?: number | undefined;
  /** That of the page before. */
  cursor?: string | undefined;
  /** Those whose values to give, as far as they are known without folding: all without, none for []. */
  keys?: readonly string[] | undefined;
}

export interface ListPage {
  sessions: Session[];
  /** Missing on the last page. */
  cursor?: string;
}

export interface AppendOptions extends Once {
  /** The seq that the first event is to get: the append is refused, with a seq-conflict, if the log is not as long as that. */
  expectedSeq?: number | undefined;
  /** Asks for values that contain what was appended: of these keys, or of all. */
  projections?: readonly string[] | true | undefined;
}

export interface Appended {
  /** The length of the log behind what was appended. */
  seq: number;
  events: Place[];
  /** There when they were asked for, and could be given. */
  projections?: Block;
}

/** Where an event stands in its log, and since when. */
export interface Place {
  seq: number;
  time: number;
}

export interface EventsQuery extends CallOptions {
  /** The first seq. */
  from?: number | undefined;
  /** How many to give at most: without, all of `events`, and 1,000 of `eventPage`. */
  limit?: number | undefined;
  /** Those to give; all without. */
  types?: readonly string[] | undefined;
}

export interface EventPage {
  events: Event[];
  /** The length of the log. */
  seq: number;
}

export interface HistoryQuery extends CallOptions {
  /** The seq of the first event of the page after it; without, it is the last page, which comes with values. */
  beforeSeq?: number | undefined;
  /** How many messages it has at most; 50 without. */
  maxMessages?: number | undefined;
  keys?: readonly string[] | undefined;
}

/** A part of a log that begins with what its oldest message stands on. */
export interface HistoryPage {
  events: Event[];
  /** There is something before it. */
  hasMore: boolean;
  /** Of the last page, which ends exactly at their seq. */
  projections?: Block;
}

export interface ValuesQuery extends CallOptions {
  /** Those to give: all without, none for []. */
  keys?: readonly string[] | undefined;
  /** The event right after which the values are to be, −1 for the empty log; without, now. One that the log does not have is not-reached at once. */
  at?: number | undefined;
  /** An event that the log must have; until then the server waits as long as waitMs, and then answers not-reached. */
  minSeq?: number | undefined;
  /** 2,000 without, a minute at most. */
  waitMs?: number | undefined;
}

/** What a model would see: the seqs of the events, in order. */
export interface Surface {
  nodes: number[];
  /** Counts replacements. */
  replaceGeneration: number;
  asOfSeq: number;
}

/** Those of the surface, as they were logged. */
export interface Messages {
  messages: unknown[];
  asOfSeq: number;
}

export interface ForkOptions extends Once {
  /** Without one the server makes one up. */
  id?: string | undefined;
  /** An event of the last turn that goes into the child; the last without. */
  atSeq?: number | undefined;
}

/** Puts one message in the place of the nodes of the surface from the seq start to the seq end. */
export interface Compaction extends Once {
  start: number;
  end: number;
  message: unknown;
}

export interface RetryQuery extends CallOptions {
  /** Those of the units to try again; all without. */
  keys?: readonly string[] | undefined;
}

/** Whether what is served of a session is what a fold from zero gives. */
export interface Verification {
  /** All keys could be compared, and nothing differs. */
  ok: boolean;
  seq: number;
  incarnation: string;
  keys: string[];
  differences: Difference[];
  unavailable?: Record<string, Unavailable>;
}

export interface Difference {
  key: string;
  seq: number;
  what: "value" | "row value" | "row state" | (string & {});
  served?: unknown;
  folded?: unknown;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  /** What it gives to programs. */
  value?: unknown;
  /** The arguments are wrong, or the tool refuses: a model can put it right; or, of a tool with retryNever, it is not known whether it was done. Nothing was appended then. */
  isError: boolean;
  events: Place[];
}

/** Which set a list is of. */
export interface PresetQuery extends CallOptions {
  /** The default set without. One that there is not is a preset-unknown. */
  preset?: string | undefined;
}

/** A tool that can be called. */
export interface Tool {
  name: string;
  plugin: string;
  description: string;
  reads?: string[];
  /** A call whose values were overtaken is not repeated, and the tool runs once at most for one idempotencyKey. */
  retryNever?: boolean;
  argumentSchema: unknown;
  resultSchema?: unknown;
}

/** A key that there is, and who computes it. Without events it folds all of them. */
export interface Offer {
  key: string;
  plugin: string;
  stateVersion: number;
  events?: string[];
  viewSchema: unknown;
}

/** A plugin of the server at one time. Times are in milliseconds since the epoch. */
export interface Plugin {
  name: string;
  path?: string;
  state: string;
  since?: number;
  until?: number;
  reason?: string;
  title?: string;
  version?: string;
  summary?: string;
  builtWith?: string;
  sha256?: string;
  pid?: number;
  restarts: number;
  lastError?: string;
  ownedEvents?: { type: string; schema?: unknown }[];
  units?: { key: string; stateVersion: number; events?: string[]; configBound?: boolean; hostOnly?: boolean }[];
  tools?: { name: string; shadowedBy?: string }[];
  /** Those that this process serves. */
  presets?: string[];
  /** It does not serve sessions without a preset: for those the plugin has another config. */
  presetOnly?: boolean;
  refused?: string[];
  warnings?: string[];
}

/** A log in the interchange form. A ReadableStream is sent as it comes, which Node does, and browsers over HTTP/2. */
export type Log = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

export interface ImportOptions extends CallOptions {
  /** Another id for the session than that of the log's header. */
  id?: string | undefined;
  /** Forgives only a last line without newline; otherwise a torn tail is dropped with a warning. */
  strict?: boolean | undefined;
  /** The log is compressed. */
  zstd?: boolean | undefined;
  /** A key with which the same log may be sent again and is taken once. The client makes up none, and sends a log once. */
  idempotencyKey?: string | undefined;
}

export interface Imported extends Session {
  /** What was dropped. */
  warnings?: string[];
}

export interface ExportOptions extends CallOptions {
  /** One event a line, without packed rows. */
  plain?: boolean | undefined;
}

/** How large a store is, and what it has done since it was opened. */
export interface StoreStats {
  storeId: string;
  boot: number;
  path: string;
  logs: number;
  events: number;
  deleted: number;
  position: number;
  bytes: number;
  free: number;
  wal: number;
  changes: number;
  groups: number;
  syncs: number;
  durability: string;
}

export interface CheckOptions extends CallOptions {
  /** The structure of the file as well. */
  pages?: boolean | undefined;
  /** Rows and values of every session, against a fold from zero. */
  values?: boolean | undefined;
  /** Hears how far it is, of about how much. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** What a check of a store found. more counts the problems that are not listed. */
export interface CheckReport {
  logs: number;
  events: number;
  rows: number;
  problems: { code: string; session?: string; seq?: number; detail: string }[];
  more: number;
}

export interface BackupOptions extends CallOptions {
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** A copy of a store. path is on the machine of the server. */
export interface Backup {
  path: string;
  bytes: number;
}

/** Whether the first start of every plugin has ended, and which do not serve. */
export interface Readiness {
  ready: boolean;
  missing: { plugin: string; state: string; /** Those that lack it where the default set does not. */ presets?: string[]; reason?: string }[];
}
