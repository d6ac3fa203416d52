import { argon2 as argon2Callback, randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { BoundedQueue } from './bounded-queue.ts';
import { isCommonPassword } from './common-passwords.ts';
import { IdentityError } from './errors.ts';
import { hashesWaiting, passwordMaxLength, passwordMinLength } from './limits.ts';

/** Stored passwords: argon2id in PHC form, `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`. */

const argon2 = promisify(argon2Callback);

/** OWASP's password storage cheat sheet: 19 MiB (here in KiB), two passes (25 ms on one core). */
const current = { memory: 19_456, passes: 2, parallelism: 1 };
const saltBytes = 16;
const hashBytes = 32;
const form = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,171})$/;

/** The hash for an unknown address: it takes the same work and never matches. */
const unknownPerson = formatPhc(Buffer.alloc(saltBytes, 1), Buffer.alloc(hashBytes, 1));

/** Concurrent hashes: one core stays free for pages, and one of Node's four threads. */
const hashesAtOnce = Math.max(1, Math.min(3, availableParallelism() - 1));
/** All hashes of the process. Those of strangers pass their own queue before (`strangersQueue`). */
const hashing = new BoundedQueue({ concurrency: hashesAtOnce, maxWaiting: hashesWaiting });
let hashed = 0;

/** Returns the hashes of this process: `running` and `waiting` now, `done` since its start. */
export const hashLoad = () => ({ ...hashing.load(), done: hashed });

/**
 * Hashes a password with a new salt.
 *
 * @throws IdentityError `busy`
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  return formatPhc(salt, await derive(opaqueString(password), salt, current, hashBytes));
}

/**
 * Returns whether a password matches a hash. `hash` null, for an unknown person: false, after the
 * same work.
 *
 * @throws IdentityError `busy`
 */
export async function isPassword(password: string, hash: string | null): Promise<boolean> {
  // For a text longer than any password another one is hashed, at the same cost; none is truncated.
  const typed = password.length > 4 * passwordMaxLength ? '' : opaqueString(password);
  const isPossible = typed !== '' && countCharacters(typed) <= passwordMaxLength;
  const parsed = parse(hash ?? unknownPerson);
  const derived = await derive(isPossible ? typed : '', parsed.salt, parsed, parsed.hash.length);
  return timingSafeEqual(derived, parsed.hash) && isPossible && hash !== null;
}

/** Returns whether a hash has other costs than the current ones and should be replaced. */
export function isOutdated(hash: string): boolean {
  const { memory, passes, parallelism } = parse(hash);
  return memory !== current.memory || passes !== current.passes || parallelism !== current.parallelism;
}

/**
 * Checks a new password: its length in code points, and whether attackers guess it first. Any
 * characters are allowed (ASVS 6.2.5).
 *
 * @param context - texts about its person: name, address, organization.
 * @throws IdentityError
 */
export async function assertNewPassword(password: string, context: readonly string[]): Promise<void> {
  const typed = opaqueString(password);
  const length = countCharacters(typed);
  if (length < passwordMinLength)
    throw new IdentityError(
      'password_too_short',
      `Enter at least ${passwordMinLength} characters. This password has ${length}. Use several unrelated words.`,
    );
  if (length > passwordMaxLength)
    throw new IdentityError(
      'password_too_long',
      `Enter at most ${passwordMaxLength} characters. This password has ${length}.`,
    );
  if (await isCommonPassword(typed, context))
    throw new IdentityError(
      'password_common',
      'This password is easy to guess. It is common, or consists of a few common words, your name or ' +
        'your address. Enter four or more unrelated words.',
    );
}

/**
 * Returns the form in which a password is hashed, so that every keyboard's spelling of it is the
 * same (OpaqueString of RFC 8265): other spaces become U+0020, then NFC. Nothing is trimmed.
 */
export const opaqueString = (password: string) => password.replace(/\p{Zs}/gu, ' ').normalize('NFC');

const countCharacters = (password: string) => [...password].length;

function derive(
  password: string,
  nonce: Buffer,
  { memory, passes, parallelism }: typeof current,
  tagLength: number,
): Promise<Buffer> {
  const parameters = { message: password, nonce, parallelism, tagLength, memory, passes };
  return hashing.run(async () => {
    const derived = await argon2('argon2id', parameters);
    hashed += 1;
    return derived;
  });
}

function parse(phc: string) {
  const [whole, memory, passes, parallelism, salt = '', hash = ''] = form.exec(phc) ?? [];
  if (whole === undefined) throw new TypeError('a stored password hash is not argon2id in PHC form');
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

/** Returns a hash with the costs of `current` in PHC form, whose base64 has no padding. */
function formatPhc(...saltAndHash: Buffer[]): string {
  const [salt, hash] = saltAndHash.map((bytes) => bytes.toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=${current.memory},t=${current.passes},p=${current.parallelism}$${salt}$${hash}`;
}
