import type { Token } from 'stream-json/core/parser.js';
import { type Bytes, readTokens } from './json-tokens.ts';
import { UnreadableDocumentError } from './problems.ts';

const depthChange: Partial<Record<Token['name'], number>> = {
  startObject: 1,
  startArray: 1,
  endObject: -1,
  endArray: -1,
};

/** Finds the region of a document and reads no further than needed. Returns null without one. */
export async function findRegion(source: Bytes): Promise<string | null> {
  const findIn = regionFinder();
  try {
    for await (const { tokens } of readTokens(source)) {
      for (const token of tokens) {
        const region = findIn(token);
        if (region !== null) return region;
      }
    }
  } catch (error) {
    if (!(error instanceof UnreadableDocumentError)) throw error;
  }
  return null;
}

/** How much of a document is read to find its region: what is read is kept until it is imported. */
const beginningMax = 1024 * 1024;

/** What the beginning of a document says, and the whole document. */
interface BegunDocument {
  /** Null: none is named, in the beginning. */
  region: string | null;
  /** Whether the beginning was the whole document. */
  isComplete: boolean;
  /** All of it, to be read once. */
  source: Bytes;
}

/** Reads the beginning of a source that can be read only once, such as a pipe, for its region. */
export async function readBeginning(source: Bytes): Promise<BegunDocument> {
  const rest = source[Symbol.asyncIterator]();
  const begun: (Uint8Array | string)[] = [];
  let isComplete = false;

  async function* beginning(): AsyncGenerator<Uint8Array | string> {
    for (let size = 0; size < beginningMax; ) {
      const { done, value } = await rest.next();
      isComplete = done === true;
      if (isComplete) return;
      begun.push(value);
      size += value.length;
      yield value;
    }
  }
  async function* whole(): AsyncGenerator<Uint8Array | string> {
    yield* begun.splice(0);
    yield* { [Symbol.asyncIterator]: () => rest };
  }
  const region = await findRegion(beginning());
  return { region, isComplete, source: whole() };
}

function regionFinder(): (token: Token) => string | null {
  let depth = 0;
  let key = '';
  return (token) => {
    depth += depthChange[token.name] ?? 0;
    if (depth !== 1) return null;
    if (token.name === 'keyValue') key = token.value;
    return token.name === 'stringValue' && key === 'region' ? token.value : null;
  };
}
