/** The content codings of bodies. */
export type Encoding = 'br' | 'gzip';

/** How a client wants its body. */
export interface AcceptedEncoding {
  /** Null: as it is. */
  encoding: Encoding | null;
  /** Whether the client rejects a body without an encoding, however small. */
  isRequired: boolean;
}

/** A smaller body fits one packet with its headers, so that an encoding saves none. */
const smallestEncodedBytes = 1_400;

const unencoded: AcceptedEncoding = { encoding: null, isRequired: false };

/** One coding of the header and its weight (RFC 9110, sections 12.4.2 and 12.5.3). */
const elementForm = /^([!#$%&'*+.^`|~\w-]+)(?:[ \t]*;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i;

/**
 * Chooses the encoding for an `Accept-Encoding` header: the one with the highest weight, and of equal
 * ones br, which takes less processor time and fewer bytes (docs/adr/0147). A client that sends no
 * header gets the body as it is. So does one that accepts nothing that the service has: RFC 9110
 * allows that, and the contract has no 406.
 */
export function chooseEncoding(header: string): AcceptedEncoding {
  if (header === '') return unencoded;
  const weights = readWeights(header);
  const others = weights.get('*');
  const br = weights.get('br') ?? others ?? 0;
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? others ?? 0;
  // Without a weight it is acceptable, after everything that the header names.
  const identity = weights.get('identity') ?? others ?? null;
  const highest = Math.max(br, gzip);
  if (highest === 0 || highest < (identity ?? 0)) return unencoded;
  return { encoding: br === highest ? 'br' : 'gzip', isRequired: identity === 0 };
}

/** Returns the encoding of a body of so many bytes; null: as it is. */
export const findEncoding = ({ encoding, isRequired }: AcceptedEncoding, bytes: number): Encoding | null =>
  isRequired || bytes >= smallestEncodedBytes ? encoding : null;

/** Returns the weights by coding, in lower case. What is not of the header's form is ignored. */
function readWeights(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const element of header.split(',')) {
    const [, coding, weight = '1'] = elementForm.exec(element.trim()) ?? [];
    if (coding !== undefined) weights.set(coding.toLowerCase(), Number(weight));
  }
  return weights;
}
