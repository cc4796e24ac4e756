import { LineSplitter, TooLongError } from "./lines.js";

/** One server-sent event. */
export interface Message {
  kind: string;
  /** That of this message or, when it has none, of the last before it that had one. */
  id: string;
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
  #id = "";
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
      const message = this.#data.length > 0 ? { kind: this.#kind, id: this.#id, data: this.#data.join("\n") } : undefined;
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
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "data":
        this.#data.push(value);
        break;
      default: // A comment has an empty field.
    }
    return undefined;
  }
}
