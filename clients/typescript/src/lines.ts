const lf = 10;
const cr = 13;

/** A line has no end within the bound. */
export class TooLongError extends Error {
  override readonly name = "TooLongError";

  constructor() {
    super("a line is longer than maxFrameBytes");
  }
}

/**
 * Splits bytes, in whatever parts they come, into lines that end in LF or CRLF. It holds one line, of at most max bytes without its end. Lines are decoded whole, so that a part
 * may end within a character.
 */
export class LineSplitter {
  readonly #max: number;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #parts: Uint8Array[] = [];
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether there is a rest that has no end yet. */
  get open(): boolean {
    return this.#held > 0;
  }

  /** The lines that end within the part. Take all of them before the next part. The part is kept where a line has no end yet: do not write to it. */
  *push(part: Uint8Array): Generator<string, void, undefined> {
    let from = 0;
    for (;;) {
      const end = part.indexOf(lf, from);
      if (end < 0) break;
      yield this.#line(part.subarray(from, end));
      from = end + 1;
    }
    if (from === part.length) return;
    this.#parts.push(part.subarray(from));
    this.#held += part.length - from;
    // One more, which may be the CR of a CRLF.
    if (this.#held > this.#max + 1) throw new TooLongError();
  }

  #line(rest: Uint8Array): string {
    let line = rest;
    if (this.#held > 0) {
      line = new Uint8Array(this.#held + rest.length);
      let at = 0;
      for (const part of this.#parts) {
        line.set(part, at);
        at += part.length;
      }
      line.set(rest, at);
      this.#parts = [];
      this.#held = 0;
    }
    if (line.length > 0 && line[line.length - 1] === cr) line = line.subarray(0, -1);
    if (line.length > this.#max) throw new TooLongError();
    return this.#decoder.decode(line);
  }
}
