/**
 * Bytes that come in parts. The parts are copied: they may have a byte each, and held as they came they would take a hundred times as much. It holds twice as many bytes as there are at most, and
 * never more than max.
 */
export class Bytes {
  /** How many there are. */
  length = 0;
  readonly #max: number;
  #room = new Uint8Array(0);

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a part, unless that makes more than max. */
  add(part: Uint8Array): boolean {
    const length = this.length + part.length;
    if (length > this.#max) return false;
    if (length > this.#room.length) {
      const room = new Uint8Array(Math.min(this.#max, Math.max(length, 2 * this.#room.length, 1024)));
      room.set(this.#room.subarray(0, this.length));
      this.#room = room;
    }
    this.#room.set(part, this.length);
    this.length = length;
    return true;
  }

  /** Gives all that came, until the next part, and begins anew. */
  take(): Uint8Array {
    const all = this.#room.subarray(0, this.length);
    this.length = 0;
    // What was large once is not to be paid for as long as the rest lasts.
    if (this.#room.length > 256 << 10) this.#room = new Uint8Array(0);
    return all;
  }
}
