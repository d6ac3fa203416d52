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
