import type { Token } from 'stream-json/core/parser.js';
import { jsonParser } from 'stream-json/core/parser.js';
import { jsonVerifier } from 'stream-json/core/utils/verifier.js';
import { UnreadableDocumentError } from './problems.ts';

/** The bytes of a file, in pieces of any size. */
export type Bytes = AsyncIterable<Uint8Array | string>;

/** How much text is turned into tokens at a time. */
const pieceBytes = 64 * 1024;

/** The largest size of a value or a gap between values, in bytes; no row comes near it. */
export const itemSizeMax = 1024 * 1024;

/** One piece of a file. `blank`: it contains only white space. */
interface Piece {
  tokens: Token[];
  bytes: number;
  blank: boolean;
}

/**
 * Reads JSON as lists of tokens, one list per piece of the file. Memory does not grow with it.
 *
 * stream-json's parser does not report where something is wrong. Its verifier does, so it reads
 * each piece first (measured: 60 MB/s, the parser 38 MB/s).
 *
 * @throws UnreadableDocumentError on text that is not UTF-8 or not JSON.
 */
export async function* readTokens(source: Bytes): AsyncGenerator<Piece> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const verify = jsonVerifier();
  const parse = jsonParser({ streamValues: false });
  let withoutToken = 0;

  const parsePiece = (text: string, bytes: number): Piece => {
    positioned(() => verify(text));
    const parsed: unknown = parse(text);
    const tokens = typeof parsed === 'object' && parsed !== null ? (parsed as { values: Token[] }).values : [];
    withoutToken = tokens.length === 0 ? withoutToken + text.length : 0;
    if (withoutToken > itemSizeMax)
      throw new UnreadableDocumentError('$', `one value is longer than ${itemSizeMax} characters`);
    return { tokens, bytes, blank: /^\s*$/.test(text) };
  };

  for await (const piece of pieces(source)) {
    yield parsePiece(decoded(decoder, piece), piece.length);
  }
  // A final line break ends a number or a word at the end of the file.
  yield parsePiece(`${decoded(decoder)}\n`, 0);
}

async function* pieces(source: Bytes): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    for (let start = 0; start < bytes.length; start += pieceBytes) yield bytes.subarray(start, start + pieceBytes);
  }
}

function decoded(decoder: TextDecoder, piece?: Uint8Array): string {
  try {
    return piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true });
  } catch (cause) {
    throw new UnreadableDocumentError('$', 'is not UTF-8 text: save the file as UTF-8', { cause });
  }
}

function positioned(step: () => unknown): void {
  try {
    step();
  } catch (cause) {
    const { line, pos, message } = cause as Error & { line?: number; pos?: number };
    const reason = sentence(message.replace(/^ERROR at .*?: (Verifier )?/, ''));
    throw new UnreadableDocumentError('$', `is not JSON at line ${line}, column ${pos}: ${reason}`, { cause });
  }
}

/** Adapts a message of stream-json. */
function sentence(reason: string): string {
  if (reason.endsWith('escaped characters'))
    return 'a text holds a control character or an escape that JSON does not have';
  return reason.replace(/^(cannot parse input:|has) /, '');
}
