import { LineSplitter, TooLongError } from "./lines.js";

/** One server-sent event. Its id is passed over: where a stream stands is told by what is in the frames, which is the same on a stream of one session and of many. */
export interface Message {
  kind: string;
  data: string;
}

/**
 * Reads server-sent events out of bytes, in whatever parts they come. It holds one at a time, whose lines have at most max bytes together (counted in UTF-16 units, of which there are no more than bytes).
 * A rest that no empty line ends is dropped. Lines end in LF or CRLF, as servers write them.
 */
export class MessageParser {
  readonly #max: number;
  readonly #lines: LineSplitter;
  #begun = false;
  #kind = "";
  #data: string[] = [];
  #size = 0;

  constructor(max: number) {
    this.#max = max;
    this.#lines = new LineSplitter(max);
  }

  /** The messages that end within the part. Take all of them before the next part. */
  *push(part: Uint8Array): Generator<Message, void, undefined> {
    for (const line of this.#lines.push(part)) {
      const message = this.#take(line);
      if (message !== undefined) yield message;
    }
  }

  #take(line: string): Message | undefined {
    if (!this.#begun) {
      this.#begun = true;
      if (line.startsWith("\ufeff")) line = line.slice(1);
    }
    if (line === "") {
      // Without data it is none.
      const message = this.#data.length > 0 ? { kind: this.#kind, data: this.#data.join("\n") } : undefined;
      this.#kind = "";
      this.#data = [];
      this.#size = 0;
      return message;
    }
    this.#size += line.length;
    if (this.#size > this.#max) throw new TooLongError();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    switch (field) {
      case "event":
        this.#kind = value;
        break;
      case "data":
        this.#data.push(value);
        break;
      default: // An id, or a comment, whose field is empty.
    }
    return undefined;
  }
}
