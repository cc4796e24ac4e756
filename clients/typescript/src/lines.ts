import { Bytes } from "./bytes.js";

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
  /** The beginning of a line. */
  readonly #begun: Bytes;

  constructor(max: number) {
    this.#max = max;
    // One more, which may be the CR of a CRLF.
    this.#begun = new Bytes(max + 1);
  }

  /** Whether there is a rest that has no end yet. */
  get open(): boolean {
    return this.#begun.length > 0;
  }

  /** The lines that end within the part. Take all of them before the next part. */
  *push(part: Uint8Array): Generator<string, void, undefined> {
    let from = 0;
    for (;;) {
      const end = part.indexOf(lf, from);
      if (end < 0) break;
      yield this.#end(part.subarray(from, end));
      from = end + 1;
    }
    if (from < part.length) this.#hold(part.subarray(from));
  }

  #hold(part: Uint8Array): void {
    if (!this.#begun.add(part)) throw new TooLongError();
  }

  #end(rest: Uint8Array): string {
    let line = rest;
    if (this.open) {
      this.#hold(rest);
      line = this.#begun.take();
    }
    if (line.length > 0 && line[line.length - 1] === cr) line = line.subarray(0, -1);
    if (line.length > this.#max) throw new TooLongError();
    return this.#decoder.decode(line);
  }
}
