import { callsText } from './calls.ts';
import { type SampleOptions, sampleOrganization } from './organization.ts';

export type { SampleOptions };

/** What `npm start` imports without data. */
export const sampleDefaults = { organizations: 3, familiesPerOrganization: 24, seed: 1 } as const;

const pieceLength = 64 * 1024;

/**
 * Writes a document of the import format in pieces. It imports without a problem, contains every
 * state of the format, and is the same for the same options. 1,000,000 grants need no more memory
 * than 10.
 */
export function generateSample(options: SampleOptions): AsyncGenerator<string> {
  return joinPieces(documentText(options));
}

/** Writes the calls of schema `platform` that bring in the same, as SQL. */
export function generateCalls(options: SampleOptions): AsyncGenerator<string> {
  return joinPieces(callsText(options));
}

async function* joinPieces(texts: Iterable<string>): AsyncGenerator<string> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

function* documentText(options: SampleOptions): Generator<string> {
  yield `{"region":${JSON.stringify(options.region)},"asOf":${JSON.stringify(options.asOf)},"organizations":[`;
  for (let organization = 0; organization < options.organizations; organization += 1) {
    yield organization === 0 ? '\n' : ',\n';
    yield* organizationText(options, organization);
  }
  yield '\n]}\n';
}

function* organizationText(options: SampleOptions, organization: number): Generator<string> {
  const sample = sampleOrganization(options, organization);
  yield `${JSON.stringify(sample.head()).slice(0, -1)},"seatPlan":${JSON.stringify(sample.seatPlan())}`;
  for (const [name, items] of Object.entries(sample.lists)) {
    let separator = '\n';
    yield `,\n"${name}":[`;
    for (const item of items()) {
      yield `${separator}${JSON.stringify(item)}`;
      separator = ',\n';
    }
    yield ']';
  }
  yield '}';
}
