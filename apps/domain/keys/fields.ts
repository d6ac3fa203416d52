import { sql } from 'kysely';
import { isIpRange } from '../contract/ip-range.ts';
import { allowedAddressesPerKey, keyDescriptionMaxCharacters, keyLabelMaxCharacters } from '../contract/limits.ts';
import type { Queryable } from '../db/database.ts';
import { KeyError } from './errors.ts';

/** What a member may change of a key. A field that is absent does not change. */
export interface KeyFields {
  label?: string;
  description?: string;
  /** IP addresses and ranges from which the key may be used; none: from every address. */
  allowedAddresses?: readonly string[];
}

/**
 * Returns the given fields as they are stored: each allowed address once, as a range in CIDR form.
 *
 * @throws KeyError when a text is too long, an allowed address is none, or there are more than 20.
 */
export async function readKeyFields(db: Queryable, fields: KeyFields): Promise<KeyFields> {
  const { label, description, allowedAddresses } = fields;
  assertLength('name', label, keyLabelMaxCharacters);
  assertLength('description', description, keyDescriptionMaxCharacters);
  return {
    ...(label === undefined ? {} : { label }),
    ...(description === undefined ? {} : { description }),
    ...(allowedAddresses === undefined ? {} : { allowedAddresses: await readRanges(db, allowedAddresses) }),
  };
}

function assertLength(what: string, text: string | undefined, max: number): void {
  if (text !== undefined && text.length > max)
    throw new KeyError('too_long', `Enter at most ${max} characters. This ${what} has ${text.length}.`);
}

/** The database sets the bits beyond a prefix to 0, and writes each range in one way. */
async function readRanges(db: Queryable, given: readonly string[]): Promise<string[]> {
  const problem = findAddressProblem(given);
  if (problem !== null) throw new KeyError('address_rejected', problem);
  const rows = await db.query(sql<{ range: string }>`
    select distinct network(g.address::inet)::text as range, network(g.address::inet) as network
    from unnest(${[...given]}::text[]) g (address) order by network`);
  return rows.map(({ range }) => range);
}

/** Returns what is wrong with a list of allowed addresses, as a sentence; null when it is accepted. */
export function findAddressProblem(given: readonly string[]): string | null {
  // An IPv4 address within an IPv6 one is no client's: the API sees the IPv4 address.
  const wrong = given.find((text) => !isIpRange(text) || (text.includes(':') && text.includes('.')));
  if (wrong !== undefined)
    return `Enter IP addresses, or ranges such as 203.0.113.0/24. “${wrong.slice(0, 50)}” is neither.`;
  if (given.length <= allowedAddressesPerKey) return null;
  return `Enter at most ${allowedAddressesPerKey} addresses and ranges. These are ${given.length}.`;
}
