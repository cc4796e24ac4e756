import { isObject } from "./errors.js";
import type { Message } from "./sse.js";
import type { Block, Event, Unavailable } from "./types.js";

/** What comes on a stream, told apart by `type`. */
export type Frame =
  | SubscribedFrame
  | ResetFrame
  | EventFrame
  | BaselineFrame
  | ProjectionFrame
  | UnavailableFrame
  | RemovedFrame
  | DeletedFrame
  | UnknownFrame;

interface Common {
  readonly sessionId: string;
  /** The frame as it came: what JavaScript has no numbers for stands here in full. It is not enumerable. */
  readonly json: string;
}

/** Begins each connection. */
export interface SubscribedFrame extends Common {
  readonly type: "session/subscribed";
  /** The last event of the log, −1 for none. */
  readonly lastSeq: number;
  readonly incarnation: string;
  readonly epoch: string;
  readonly heartbeatMs: number;
}

/**
 * The log does not have the position from which the stream was to go on. What is known of the session is void; a baseline follows. With the reason "damaged" none does: the server cannot read the log, and
 * follow goes on with the other sessions, and with this one once a later connection finds it whole.
 */
export interface ResetFrame extends Common {
  readonly type: "session/reset";
  readonly reason: "incarnation" | "beyond-end" | "unknown" | "damaged" | (string & {});
}

/** An event, in the order of the log and without gaps but for those that were not asked for. */
export interface EventFrame extends Common {
  readonly type: "session/event";
  readonly event: Event;
  /** Where a stream may go on behind it. */
  readonly position: string;
}

/** All values, once on each connection, after the events that are behind its position. It is a block. */
export interface BaselineFrame extends Common, Readonly<Block> {
  readonly type: "session/baseline";
  readonly position: string;
}

/** A value that changed, after the event that changed it. */
export interface ProjectionFrame extends Common {
  readonly type: "session/projection";
  readonly key: string;
  readonly value: unknown;
  readonly seq: number;
  readonly rev: number;
}

/** A key has no value any more, or not yet. */
export interface UnavailableFrame extends Common, Readonly<Unavailable> {
  readonly type: "session/projection-unavailable";
  readonly key: string;
  readonly rev: number;
}

/** Nobody computes the key any more. */
export interface RemovedFrame extends Common {
  readonly type: "session/projection-removed";
  readonly key: string;
  readonly rev: number;
}

/** The session was deleted. Nothing of it follows. */
export interface DeletedFrame extends Common {
  readonly type: "session/deleted";
}

/** There is no such session, of those that were to be followed. Nothing of it follows. */
export interface UnknownFrame extends Common {
  readonly type: "session/unknown";
}

// What the fields of each kind must be, for those that programs count on.
const shapes: Record<Frame["type"], Record<string, (value: unknown) => boolean>> = {
  "session/subscribed": { lastSeq: isNumber, incarnation: isName, epoch: isString, heartbeatMs: isNumber },
  "session/reset": { reason: isString },
  "session/event": { event: (v) => isObject(v) && isString(v["type"]) && isNumber(v["seq"]) },
  "session/baseline": { epoch: isString, gen: isNumber, asOfSeq: isNumber, values: isObject, revs: isObject },
  "session/projection": { key: isString, value: (v) => v !== undefined, seq: isNumber, rev: isNumber },
  "session/projection-unavailable": { key: isString, code: isString, seq: isNumber, rev: isNumber },
  "session/projection-removed": { key: isString, rev: isNumber },
  "session/deleted": {},
  "session/unknown": {},
};

/** Reads a message of a stream. It is undefined for a kind that this version does not know. */
export function readFrame(m: Message): Frame | undefined {
  if (!Object.hasOwn(shapes, m.kind)) return undefined;
  const kind = m.kind as Frame["type"];
  const value: unknown = JSON.parse(m.data);
  if (!isObject(value) || !isString(value["sessionId"])) throw new TypeError("it does not say of which session it is");
  for (const [name, is] of Object.entries(shapes[kind])) {
    if (!is(value[name])) throw new TypeError(`its field ${name} is not what it must be`);
  }
  value["type"] = kind;
  return withText(value, m.data);
}

/** Says of a session that it is not there any more, where the server does not. */
export function deletedFrame(sessionId: string): DeletedFrame {
  const value = { type: "session/deleted", sessionId };
  return withText(value, JSON.stringify(value)) as DeletedFrame;
}

function withText(value: object, json: string): Frame {
  return Object.defineProperty(value, "json", { value: json }) as Frame;
}

/** The frame with its position. */
export function placed<F extends EventFrame | BaselineFrame>(frame: F, position: string): F {
  return Object.assign(frame, { position });
}

function isNumber(value: unknown): boolean {
  return Number.isSafeInteger(value);
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isName(value: unknown): boolean {
  return isString(value) && value !== "";
}
