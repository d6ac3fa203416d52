/** An answer as a person reads it: `text`, or else `hex`. */
export type ReadableAnswer = { text: string } | { hex: string };

/**
 * Returns the kept bytes of an answer as text when they are UTF-8, otherwise in hex. Bytes with a
 * `Content-Encoding` are never text. A character that is cut off at the end is omitted.
 */
export function readAnswer(answer: Buffer, encoding: string | null): ReadableAnswer {
  if (encoding !== null) return { hex: answer.toString('hex') };
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return { text: decoder.decode(answer, { stream: true }) };
  } catch {
    return { hex: answer.toString('hex') };
  }
}
