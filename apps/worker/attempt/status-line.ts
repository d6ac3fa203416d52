/** Longer lines are not read on; the parser of node:http gives up at 16 KiB of headers too. */
const lineMaxCharacters = 16_384;

/**
 * Reads the status line off an answer's bytes as they arrive, skipping interim answers (1xx).
 *
 * The status line alone decides the outcome, but every HTTP client reports it only after
 * the last header: a receiver that answers `200 OK` and then trickles, breaks or floods its headers
 * has accepted the event, and repeating it would be our mistake.
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
    const code = /^HTTP\/1\.[01] (\d{3})(?: .*)?\r$/.exec(line)?.[1];
    const value = code === undefined ? null : Number(code);
    inInterim = value !== null && value >= 100 && value < 200 && value !== 101; // 101 ends HTTP on the connection
    if (inInterim) return;
    status = value;
    done = true;
  }

  return {
    /** Takes the next bytes; those after the status line are ignored. */
    read(bytes: Buffer): void {
      if (done) return;
      const lines = (rest + bytes.toString('latin1')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!done) readLine(line);
      }
      if (rest.length > lineMaxCharacters) done = true;
    },
    /** Null until a whole status line has arrived; stays null when the answer is not HTTP/1.x. */
    get status(): number | null {
      return status;
    },
  };
}
