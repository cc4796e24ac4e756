import { AnswerError, FoldhostError, isObject, NetworkError, problemOf } from "./errors.js";
import type { Frame } from "./frames.js";
import { ask, errorOf, get, once, post, segment, Sender, sessionPath, type ClientOptions, type Request } from "./request.js";
import { pause, waitAfter } from "./retry.js";
import { follow, Many, Single, type Followed, type StreamOptions } from "./stream.js";
import { track, trackAll, type Tracked, type TrackedSet, type TrackAllOptions, type TrackOptions } from "./track.js";
import {
  RawItem,
  type Appended,
  type AppendOptions,
  type Backup,
  type BackupOptions,
  type Block,
  type CallOptions,
  type CheckOptions,
  type CheckReport,
  type Compaction,
  type Created,
  type Event,
  type EventPage,
  type EventsQuery,
  type ExportOptions,
  type ForkOptions,
  type HistoryPage,
  type HistoryQuery,
  type Imported,
  type ImportOptions,
  type Item,
  type ListPage,
  type ListQuery,
  type Log,
  type Messages,
  type NewSession,
  type Offer,
  type Once,
  type Plugin,
  type PresetQuery,
  type Readiness,
  type RetryQuery,
  type Session,
  type StoreStats,
  type Surface,
  type Tool,
  type ToolResult,
  type ValuesQuery,
  type Verification,
} from "./types.js";

/**
 * Calls one server. A call lasts as long as its signal lets it.
 *
 * Calls reject with a FoldhostError for what the server says, with its code; a NetworkError for an answer that did not come; an AnswerError for one that makes no sense; the reason of the signal;
 * and a TypeError for what is wrong before anything is sent.
 *
 * What failed in passing is sent again, with growing waits and `tries` times in all, where that is as good as sending it once: reading, detaching, verifying, and everything that writes into a log
 * or makes one, tools too, because each such request carries an idempotency key, by which the server knows it again. A tool whose plugin is not available is not called again, because it may have begun. Deleting, importing, retrying units and restarting plugins are sent again only if
 * there was no connection at all, which Node knows and browsers do not tell.
 */
export class Client {
  readonly #sender: Sender;

  /** Nothing is sent. It throws a TypeError about the options. */
  constructor(options: ClientOptions) {
    this.#sender = new Sender(options);
  }

  /** Where the server is, without a slash at the end. */
  get url(): string {
    return this.#sender.base.href.replace(/\/+$/, "");
  }

  /** Makes a session. One that differs from what there is of the id is a session-conflict. */
  async create(session: NewSession = {}): Promise<Created> {
    const { id, cwd, preset, createdAt, events } = session;
    const doing = id === undefined ? "create a session" : `create session ${quote(id)}`;
    const r = post(doing, "/v1/sessions");
    r.json = body({ id, cwd, preset, createdAt }, events);
    const { status, value } = await this.#sender.call(once(r, session.idempotencyKey), session.signal);
    if (!isObject(value)) throw new AnswerError(doing, "it is no session");
    return { ...(value as unknown as Session), created: status === 201 };
  }

  /** Gives a session without touching it. */
  async get(id: string, options: CallOptions = {}): Promise<Session> {
    return this.#sender.json(this.#on(id, "read session", ""), options.signal);
  }

  /** Gives a page of sessions, latest commit first. */
  async list(query: ListQuery = {}): Promise<ListPage> {
    const r = get("list sessions", "/v1/sessions");
    ask(r, { limit: query.limit, cursor: query.cursor, keys: query.keys });
    return this.#sender.json(r, query.signal);
  }

  /** Gives the sessions of all pages from the query on. */
  async *sessions(query: ListQuery = {}): AsyncGenerator<Session, void, undefined> {
    for (let cursor = query.cursor; ; ) {
      const page = await this.list({ ...query, cursor });
      yield* page.sessions;
      cursor = page.cursor;
      if (cursor === undefined || cursor === "") return;
    }
  }

  /** Deletes a session for good. It is not repeated by itself: a second one would find nothing, or a successor. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const doing = `delete session ${quote(id)}`;
    await this.#sender.call({ doing, method: "DELETE", path: sessionPath(doing, id, ""), safe: false }, options.signal);
  }

  /** Makes a session cold, its values written. The next touch opens it again. */
  async detach(id: string, options: CallOptions = {}): Promise<Session> {
    return this.#sender.json({ ...this.#to(id, "detach session", "/detach"), safe: true }, options.signal);
  }

  /**
   * Appends events, all or none. Of a FoldhostError index says which event is refused. After a NetworkError it is not known whether they were appended: call it again with the same idempotencyKey.
   */
  async append(id: string, events: Item | RawItem | readonly (Item | RawItem)[], options: AppendOptions = {}): Promise<Appended> {
    const r = this.#to(id, "append to session", "/events");
    r.json = body({ expectedSeq: options.expectedSeq }, Array.isArray(events) ? events : [events]);
    const { projections } = options;
    ask(r, { projections: projections === true ? "*" : projections });
    return this.#sender.json(once(r, options.idempotencyKey), options.signal);
  }

  /** Reads some events, 1,000 at most, all at once. */
  async eventPage(id: string, query: EventsQuery = {}): Promise<EventPage> {
    const r = this.#events(id, query);
    ask(r, { limit: query.limit });
    return this.#sender.json(r, query.signal);
  }

  /**
   * Gives events one after the other, up to the end that the log has when the reading begins, or later. It holds one at a time. A connection that breaks is made again, and the reading goes on
   * behind the last event; if the session was deleted meanwhile, and made again, that is the end, with a NetworkError.
   */
  async *events(id: string, query: EventsQuery = {}): AsyncGenerator<Event, void, undefined> {
    const { limit = Infinity, signal } = query;
    // Which life it is, so that a reading that goes on does so in the same one.
    const { incarnation } = await this.get(id, { signal });
    let from = query.from ?? 0;
    let given = 0;
    // A limit that is none is the server's to refuse, and not taken for one that is reached.
    for (let failures = 1; limit < 0 || !(given >= limit); failures++) {
      const r = this.#events(id, { ...query, from });
      r.headers = { ...r.headers, Accept: "application/x-ndjson" };
      if (!(limit - given > 1000)) ask(r, { limit: limit - given });
      const res = await this.#sender.open(r, signal);
      try {
        for await (const line of this.#sender.lines(r.doing, res, signal)) {
          const event = eventOf(r.doing, line);
          from = event.seq + 1;
          given++;
          failures = 1;
          yield event;
          if (given >= limit) return;
        }
        return;
      } catch (err) {
        if (!(err instanceof NetworkError) || failures >= this.#sender.tries) throw err;
        await pause(waitAfter(err, failures), signal);
      }
      const now = await this.get(id, { signal });
      if (now.incarnation !== incarnation) throw new NetworkError(r.doing, "the reading broke off, and the session is another one now");
    }
  }

  /** Reads a log backwards, page by page. */
  async history(id: string, query: HistoryQuery = {}): Promise<HistoryPage> {
    const r = this.#on(id, "read the history of session", "/history");
    ask(r, { beforeSeq: query.beforeSeq, maxMessages: query.maxMessages, keys: query.keys });
    return this.#sender.json(r, query.signal);
  }

  /** Reads values. */
  async projections(id: string, query: ValuesQuery = {}): Promise<Block> {
    const r = this.#on(id, "read values of session", "/projections");
    ask(r, { keys: query.keys, at: query.at, minSeq: query.minSeq, wait: query.waitMs === undefined ? undefined : `${query.waitMs}ms` });
    return this.#sender.json(r, query.signal);
  }

  /** Reads the surface of a session. */
  async surface(id: string, options: CallOptions = {}): Promise<Surface> {
    return this.#sender.json(this.#on(id, "read the surface of session", "/surface"), options.signal);
  }

  /** Reads the messages of a session, all at once. */
  async messages(id: string, options: CallOptions = {}): Promise<Messages> {
    return this.#sender.json(this.#on(id, "read the messages of session", "/messages"), options.signal);
  }

  /** Makes a child, which begins with the log up to the end of a turn. */
  async fork(id: string, options: ForkOptions = {}): Promise<Session> {
    const r = this.#to(id, "fork session", "/fork", { atSeq: options.atSeq, id: options.id });
    return this.#sender.json(once(r, options.idempotencyKey), options.signal);
  }

  /** Appends a compaction. */
  async compact(id: string, compaction: Compaction): Promise<Appended> {
    const { start, end, message } = compaction;
    const r = this.#to(id, "compact session", "/compact", { start, end, message });
    return this.#sender.json(once(r, compaction.idempotencyKey), compaction.signal);
  }

  /** Closes a turn whose program is gone. There are no events where there is nothing to close. */
  async recover(id: string, options: Once = {}): Promise<Appended> {
    return this.#sender.json(once(this.#to(id, "recover session", "/recover"), options.idempotencyKey), options.signal);
  }

  /** Has units that failed in a session tried again. It gives the values then. */
  async retry(id: string, query: RetryQuery = {}): Promise<Block> {
    return this.#sender.json(this.#to(id, "retry units of session", "/retry", query.keys === undefined ? undefined : { keys: query.keys }), query.signal);
  }

  /** Compares what is served of a session with a fold from zero, which takes as long as the log is. It changes nothing. */
  async verify(id: string, options: CallOptions = {}): Promise<Verification> {
    return this.#sender.json({ ...this.#to(id, "verify session", "/verify"), safe: true }, options.signal);
  }

  /**
   * Runs a tool for a session. One with retryNever is asked once, however often the request has to be sent, unless idempotencyKey is null. After plugin-unavailable no tool is asked again: it may have begun
   * before its plugin ended, and what it does besides its answer may not bear being done twice.
   */
  async callTool(id: string, tool: string, args: unknown, options: Once = {}): Promise<ToolResult> {
    const doing = `call tool ${quote(tool)} for session ${quote(id)}`;
    const r = post(doing, sessionPath(doing, id, `/tools/${segment(doing, tool)}`), { arguments: args });
    // The tool may have been at work when its plugin ended: asked again, it would be at work once more.
    r.final = "plugin-unavailable";
    return this.#sender.json(once(r, options.idempotencyKey), options.signal);
  }

  /** Lists the tools that can be called by sessions without a preset, or of one, by name. */
  async tools(query: PresetQuery = {}): Promise<Tool[]> {
    return this.#listed("list tools", "/v1/tools", "tools", query);
  }

  /** Lists the keys that sessions without a preset, or of one, have values of. */
  async offers(query: PresetQuery = {}): Promise<Offer[]> {
    return this.#listed("list projections", "/v1/projections", "projections", query);
  }

  /** Lists the plugins of the default set, or of a preset, as they are with the config that it gives them, by name. */
  async plugins(query: PresetQuery = {}): Promise<Plugin[]> {
    return this.#listed("list plugins", "/v1/plugins", "plugins", query);
  }

  /** Brings up a new process of a plugin, which takes over without a gap. It is not waited for. A plugin that has several configs gets one for each; what is given is that of the default set. */
  async restartPlugin(name: string, options: CallOptions = {}): Promise<Plugin> {
    const doing = `restart plugin ${quote(name)}`;
    return this.#sender.json(post(doing, `/v1/plugins/${segment(doing, name)}/restart`), options.signal);
  }

  /** Makes a session of a log in the interchange form, whole or not at all. Of a FoldhostError index says which event is refused; it is undefined for the header. */
  async import(log: Log, options: ImportOptions = {}): Promise<Imported> {
    const r = post(options.id === undefined ? "import a log" : `import a log as session ${quote(options.id)}`, "/v1/import");
    ask(r, { id: options.id, strict: options.strict === true ? true : undefined });
    r.body = log as BodyInit;
    r.headers = { "Content-Type": "application/x-ndjson" };
    if (options.zstd) r.headers["Content-Encoding"] = "zstd";
    if (options.idempotencyKey !== undefined) r.headers["Idempotency-Key"] = options.idempotencyKey;
    return this.#sender.json(r, options.signal);
  }

  /**
   * Gives the log of a session in the interchange form, as it comes: the header, and the events that it has when the export begins. What a reading that fails has given is a part: its NetworkError says
   * so, and nothing in the text does. Cancel the stream if you do not read it to its end.
   */
  async export(id: string, options: ExportOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const r = this.#on(id, "export session", "/export");
    ask(r, { pack: options.plain ? false : undefined });
    return this.#sender.stream(r.doing, await this.#sender.open(r, options.signal), options.signal);
  }

  /** Looks at the store of the server. */
  async storeStats(options: CallOptions = {}): Promise<StoreStats> {
    return this.#sender.json(get("look at the store", "/v1/store"), options.signal);
  }

  /** Looks at everything in the store of the server, while it is in use, and repairs nothing. Problems are no error. */
  async checkStore(options: CheckOptions = {}): Promise<CheckReport> {
    const r = { ...post("check the store", "/v1/store/check", { pages: options.pages, values: options.values }), safe: true };
    return (await this.#long(r, "report", options)) as CheckReport;
  }

  /** Copies the store of the server, while it is in use, to a new file on the server's machine, which appears when it is whole. path is absolute. */
  async backupStore(path: string, options: BackupOptions = {}): Promise<Backup> {
    return (await this.#long(post("back up the store", "/v1/store/backup", { path }), "backup", options)) as Backup;
  }

  /** Resolves if the process answers. It is asked once. */
  async healthy(options: CallOptions = {}): Promise<void> {
    const res = await this.#sender.send(get("ask whether the server is alive", "/healthz"), options.signal);
    await res.body?.cancel();
  }

  /** Asks once whether the server is ready. One that is not is no error. */
  async ready(options: CallOptions = {}): Promise<Readiness> {
    const r = get("ask whether the server is ready", "/readyz");
    const res = await this.#sender.raw(r, options.signal);
    if (res.status !== 200 && res.status !== 503) throw await errorOf(r.doing, res, options.signal);
    const text = await this.#sender.text(r.doing, res, options.signal);
    try {
      const ready: unknown = JSON.parse(text);
      if (isObject(ready) && typeof ready["ready"] === "boolean") return ready as unknown as Readiness;
    } catch {
      // The same as JSON that says something else.
    }
    throw new AnswerError(r.doing, "it does not say whether it is ready");
  }

  /**
   * Follows one session. A connection that ends is made again, with growing waits, behind the last event that was given: so no event comes twice and none is missing, and a new SubscribedFrame and
   * BaselineFrame say that it happened. A reader that is slow gets every event, and of each value the latest. It holds one frame.
   *
   * It ends with a DeletedFrame, also when the session turns out to have been deleted meanwhile; with the reason of the signal; and with an error that would come again, such as a FoldhostError for
   * a session that there is not. Leaving the loop ends the connection; from elsewhere, while it waits for a frame, the signal does.
   *
   * What a reader keeps of a stream is best kept in this order: first what the frame says, then its position; a stream that begins at that position later goes on behind it.
   */
  stream(id: string, options: StreamOptions = {}): AsyncGenerator<Frame, void, undefined> {
    return follow(this.#sender, new Single(id, options), options);
  }

  /**
   * stream for up to 20 sessions on one connection, of which browsers have six to a server over HTTP/1.1. Of each session it gives the frames that stream would, in the same order, and events of all
   * sessions in the order of their commits as far as they are on one connection. Positions are those of each session: it makes no difference which sessions are followed together.
   *
   * A session that there is not when it begins is told by an UnknownFrame, one that is deleted by a DeletedFrame, also when that turns out later; the rest goes on. It ends when none is left, and else
   * as stream does.
   */
  follow(sessions: readonly (string | Followed)[], options: StreamOptions = {}): AsyncGenerator<Frame, void, undefined> {
    return follow(this.#sender, new Many(sessions, options), options);
  }

  /** Keeps a store of the latest values of a session, by a stream, until it is closed. */
  track(id: string, options: TrackOptions = {}): Tracked {
    return track(this, id, options);
  }

  /** track for up to 20 sessions on one connection. */
  trackAll(ids: readonly string[], options: TrackAllOptions = {}): TrackedSet {
    return trackAll(this, ids, options);
  }

  /** A GET about a session. */
  #on(id: string, doing: string, below: string): Request {
    const all = `${doing} ${quote(id)}`;
    return get(all, sessionPath(all, id, below));
  }

  /** A POST about a session. */
  #to(id: string, doing: string, below: string, value?: unknown): Request {
    const all = `${doing} ${quote(id)}`;
    return post(all, sessionPath(all, id, below), value);
  }

  #events(id: string, query: EventsQuery): Request {
    const r = this.#on(id, "read events of session", "/events");
    ask(r, { from: query.from, types: query.types });
    return r;
  }

  async #listed<T>(doing: string, path: string, name: string, query: PresetQuery): Promise<T[]> {
    const r = get(query.preset === undefined ? doing : `${doing} of preset ${quote(query.preset)}`, path);
    ask(r, { preset: query.preset });
    const list = (await this.#sender.json<Record<string, unknown>>(r, query.signal))[name];
    if (!Array.isArray(list)) throw new AnswerError(r.doing, `it has no ${name}`);
    return list as T[];
  }

  /** Reads an answer that says how far it is. It gives the field of the last line. */
  async #long(r: Request, field: string, options: CheckOptions): Promise<unknown> {
    r.headers = { ...r.headers, Accept: "application/x-ndjson" };
    const res = await this.#sender.open(r, options.signal);
    let last: unknown;
    for await (const line of this.#sender.lines(r.doing, res, options.signal)) {
      const step = parse(r.doing, line);
      const problem = step["problem"];
      if (problem !== undefined) {
        const fields = problemOf(problem);
        throw fields === undefined ? new AnswerError(r.doing, line) : new FoldhostError(r.doing, Number((problem as { status?: unknown }).status ?? 0), fields);
      }
      if (typeof step["done"] === "number") options.onProgress?.(step["done"], Number(step["total"] ?? 0));
      last = step[field];
    }
    if (last === undefined) throw new AnswerError(r.doing, `it ends without a ${field}`);
    return last;
  }
}

const quote = (name: string): string => JSON.stringify(name);

/** A body with events, of which some are JSON already. Fields that are undefined are left out, as JSON.stringify does. */
function body(fields: Record<string, unknown>, events: readonly (Item | RawItem)[] | undefined): string {
  const text = JSON.stringify(fields);
  if (events === undefined) return text;
  const list = events.map((item) => (item instanceof RawItem ? item.json : JSON.stringify({ ...item, data: item.data ?? null })));
  return `${text.slice(0, -1)}${text === "{}" ? "" : ","}"events":[${list.join(",")}]}`;
}

function parse(doing: string, line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    if (isObject(value)) return value;
  } catch (err) {
    throw new AnswerError(doing, err);
  }
  throw new AnswerError(doing, "a line is no object");
}

function eventOf(doing: string, line: string): Event {
  const value = parse(doing, line);
  if (typeof value["type"] !== "string" || !Number.isSafeInteger(value["seq"])) throw new AnswerError(doing, "a line is no event");
  return value as unknown as Event;
}
