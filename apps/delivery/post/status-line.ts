/** Longer lines are not read. The parser of node:http also stops at 16 KiB of headers. */
const lineMaxCharacters = 16_384;

/**
 * Reads the status line from a response's bytes as they arrive, and skips interim responses (1xx).
 *
 * The status line alone decides the outcome, but HTTP clients report it after the last header. A
 * receiver that answers `200 OK` and then breaks its headers has accepted the event. As browsers
 * do, it takes a bare LF for the end of the line, and several spaces for one.
 */
export function createStatusLineReader() {
  let status: number | null = null;
  let done = false;
  let inInterim = false;
  let rest = '';

  function readLine(line: string): void {
    if (inInterim) {
      inInterim = line !== '\r' && line !== '';
      return;
    }
    const code = /^HTTP\/1\.[01] +(\d{3})(?: .*)?\r?$/.exec(line)?.[1];
    const value = code === undefined ? null : Number(code);
    inInterim = value !== null && value >= 100 && value < 200 && value !== 101; // 101 ends HTTP on the connection
    if (inInterim) return;
    status = value;
    done = true;
  }

  return {
    /** Reads the next bytes; those after the status line are ignored. */
    read(bytes: Buffer): void {
      if (done) return;
      const lines = (rest + bytes.toString('latin1')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!done) readLine(line);
      }
      if (rest.length > lineMaxCharacters) done = true;
    },
    /** Null until a whole status line has arrived, and when the response is not HTTP/1.x. */
    get status(): number | null {
      return status;
    },
  };
}
