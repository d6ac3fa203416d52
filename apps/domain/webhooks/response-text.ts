/** A response as a person reads it: `text`, or else `hex`. */
export type ReadableResponse = { text: string } | { hex: string };

/**
 * Returns the kept bytes of a response as text, or in hex when they have a `Content-Encoding`.
 * Bytes that are not UTF-8 become U+FFFD, so that an error page in another encoding can still be
 * read. A character that is cut off at the end is omitted.
 */
export function readResponse(response: Buffer, encoding: string | null): ReadableResponse {
  if (encoding !== null) return { hex: response.toString('hex') };
  return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(response, { stream: true }) };
}
