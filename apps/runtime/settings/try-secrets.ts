import { isDeepStrictEqual } from 'node:util';

/** A secret with a version, or one without. */
type Secret = { version: number; secret: Buffer } | Buffer;

/**
 * Tries secrets, newest first, that replace those in use. They must keep the first one, because what
 * was just created with it could not be verified or unsealed any more, and no version may have
 * another secret.
 */
export async function trySecrets(next: readonly Secret[], old: readonly Secret[]): Promise<string | null> {
  const versions = new Map(old.map((one) => [findVersion(one), one]));
  const changed = next.map(findVersion).find((version, index) => {
    const before = version === null ? undefined : versions.get(version);
    return before !== undefined && !isDeepStrictEqual(before, next[index]);
  });
  if (changed !== undefined) return `has another secret under the version ${changed}, which is in use`;
  return next.some((one) => isDeepStrictEqual(one, old[0]))
    ? null
    : 'lacks the first secret in use: another one must have been the first before it can be removed';
}

const findVersion = (secret: Secret): number | null => ('version' in secret ? secret.version : null);
