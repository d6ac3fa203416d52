/** An answer as a person reads it: `text`, or else `hex`. */
export type ReadableAnswer = { text: string } | { hex: string };

/**
 * Returns the kept bytes of an answer as text, or in hex when they have a `Content-Encoding`. Bytes
 * that are not UTF-8 become U+FFFD, so that an error page in another encoding can still be read. A
 * character that is cut off at the end is omitted.
 */
export function readAnswer(answer: Buffer, encoding: string | null): ReadableAnswer {
  if (encoding !== null) return { hex: answer.toString('hex') };
  return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(answer, { stream: true }) };
}
