/** How many bytes may come up to the end of the status line, interim responses included. */
const maxBytes = 16_384;

/** The versions are those that the parser of node:http takes. */
const statusLine = /^HTTP\/(?:0\.9|1\.[01]|2\.0) +(\d{3})(?: .*)?\r?$/;

/** A response that has no status line of HTTP/1.x in its first 16 KiB. */
export class StatusLineError extends Error {
  /** The code of node:http's parser for the same. */
  readonly code = 'HPE_INVALID_STATUS';
}

/**
 * Reads the status line from a response's bytes as they arrive, and skips interim responses (1xx).
 *
 * The status line alone decides the outcome, but HTTP clients report it after the last header. A
 * receiver that answers `200 OK` and then breaks its headers has accepted the event. As browsers
 * do, it takes a bare LF for the end of the line, and several spaces for one.
 */
export class StatusLineReader {
  #status: number | null = null;
  #isDone = false;
  #isInterim = false;
  #bytesLeft = maxBytes;
  #rest = '';

  /** Null until a whole status line has arrived. */
  get status(): number | null {
    return this.#status;
  }

  /** Whether no status line can come any more: the response is not HTTP, or too long up to it. */
  get isRejected(): boolean {
    return this.#isDone && this.#status === null;
  }

  /** Reads the next bytes; those after the status line are ignored. */
  read(bytes: Buffer): void {
    if (this.#isDone) return;
    const counted = bytes.subarray(0, this.#bytesLeft);
    this.#bytesLeft -= counted.length;
    const lines = (this.#rest + counted.toString('latin1')).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!this.#isDone) this.#readLine(line);
    }
    if (this.#bytesLeft === 0) this.#isDone = true;
  }

  #readLine(line: string): void {
    const isEmpty = line === '\r' || line === '';
    if (this.#isInterim) this.#isInterim = !isEmpty;
    if (this.#isInterim || isEmpty) return;
    const code = statusLine.exec(line)?.[1];
    const value = code === undefined ? null : Number(code);
    this.#isInterim = value !== null && value >= 100 && value < 200 && value !== 101; // 101 ends HTTP on the connection
    if (this.#isInterim) return;
    this.#status = value;
    this.#isDone = true;
  }
}
