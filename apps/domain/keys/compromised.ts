import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database } from '../db/database.ts';
import { countFailure, ownFailure, withdrawFailure } from '../identity/sign-in-failures.ts';
import { ApiKey } from './api-key.entity.ts';
import { KeyError } from './errors.ts';
import { fingerprints, type KeySecrets } from './key.ts';
import { assertMayManageKeys } from './revoke.ts';

/** Matches a key within other text: a header, a `curl` line, a line of a log. */
const keysInText = /aln_[a-z]{2}_[0-9A-Za-z]{40}(?![0-9A-Za-z])/g;

/**
 * Finds a leaked key of an organization, by its fingerprint under every pepper in use, and records
 * who reported it. Returns null for any other text, without saying whether it is a key of another
 * organization, of another region or none. The text is not stored.
 *
 * A key cannot be guessed (178 random bits). Misses are still limited, like attempts to sign in, so
 * that they cannot load the database.
 *
 * @throws KeyError when the person may not manage keys, or the text contains no key, or several.
 * @throws IdentityError `too_many_attempts` after ten misses, with the time of the next attempt.
 */
export async function findCompromisedKey(
  database: Database,
  input: { organizationId: string; personId: string; text: string; address: string | null },
  secrets: KeySecrets,
  now: () => Date = () => new Date(),
): Promise<{ keyId: string } | null> {
  const { organizationId, personId, text, address } = input;
  await assertMayManageKeys(database, organizationId, { personId });
  const key = readKey(text);
  // No address: the misses of one person must not slow down sign-ins from the same office.
  const failure = ownFailure('compromised_key', personId);
  await countFailure(database, failure, now());
  const reported = await database.change(async (tx) => {
    const found = await tx.findOne(ApiKey, {
      organizationId,
      fingerprint: { $in: fingerprints(key, secrets.peppers) },
    });
    if (found === null) return null;
    const { id: keyId, hint } = found;
    const by = { personId, address };
    await recordAuditEntry(tx, { organizationId, by, keyId, action: 'key.report', detail: { hint } });
    return { keyId };
  });
  // Misses stay counted: a member may know a key of the organization.
  if (reported !== null) await withdrawFailure(database, failure);
  return reported;
}

function readKey(text: string): string {
  const [key, ...others] = new Set(text.match(keysInText) ?? []);
  if (key === undefined)
    throw new KeyError(
      'no_key_in_text',
      'This text contains no API key. A key is aln_, a region, _ and 40 letters or digits. Paste the complete key.',
    );
  if (others.length > 0)
    throw new KeyError('several_keys_in_text', 'This text contains several keys. Paste one key at a time.');
  return key;
}
