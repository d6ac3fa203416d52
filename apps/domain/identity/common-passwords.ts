/**
 * Passwords that attackers guess first: those made of at most three pieces. A piece is a listed
 * common password, a word of the person's (name, address, organization) or the product's, up to
 * four digits (a year, a day), a few repeated characters, or a single character. `Password2026!`,
 * `qwertyuiop12`, `sunshinebutterfly` and `abcabcabcabc` are such passwords; four freely chosen
 * words are not.
 *
 * The list (49,233 leaked passwords, `@zxcvbn-ts/language-common`) has few of twelve and more
 * characters, because people lengthen short ones. Used as pieces it covers the millions that are
 * made so, which a list of long passwords would not (ASVS 6.2.4 requires 3,000).
 */

import { fold } from '../db/fold.ts';
import { passwordMaxLength } from './limits.ts';

/** The most pieces of a password that is rejected. */
const guessablePieces = 3;
/** No listed entry is longer. */
const longestListed = 30;
/** Number of characters that, repeated, are one piece. */
const longestUnit = 7;
/** Shorter words of the person are not searched for. */
const shortestWord = 3;
/** Words that everyone here may think of. Source: ASVS 6.2.11, which requires a written list. */
const ownWords = ['orgapi', 'org-api', 'organization', 'organisation', 'console', 'webhook', 'password'];

let listed: Promise<ReadonlySet<string>> | undefined;

/** Loaded when first needed (35 ms): few processes ever set a password. */
function getListed(): Promise<ReadonlySet<string>> {
  listed ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set((dictionary['passwords-common'] as string[]).filter((entry) => entry.length > 1)),
  );
  return listed;
}

/** Returns whether attackers guess a password first. `context`: name, address, organization. */
export async function isCommonPassword(password: string, context: readonly string[]): Promise<boolean> {
  const own = new Set([...ownWords, ...context.flatMap(splitWords)]);
  const list = await getListed();
  const longestPiece = Math.max(longestListed, ...[...own].map(({ length }) => length));
  const isKnown = (piece: string) =>
    list.has(piece) || own.has(piece) || /^\d{2,4}$/.test(piece) || isRepetition(piece);
  // One character may fold to 18. The work grows with the square, and keeps the process from any other.
  const text = foldWhole(password).slice(0, passwordMaxLength);
  // Separators between words do not make them harder to guess.
  const variants = [text, text.replace(/[\s._-]+/g, '')];
  return variants.some((variant) => fewestPieces(variant, longestPiece, isKnown) <= guessablePieces);
}

/** Folds a text and removes every mark, not only those of Latin letters. */
const foldWhole = (text: string): string => fold(text).replace(/\p{M}/gu, '');

/** Returns a text, its words, and these joined: "Ada Rivers" gives itself, rivers, adarivers. */
function splitWords(text: string): string[] {
  const whole = foldWhole(text.trim());
  const words = whole.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  return [whole, ...words, words.join('')].filter((word) => word.length >= shortestWord);
}

/** Returns whether a text repeats a few characters; the last repetition may be cut short. */
function isRepetition(text: string): boolean {
  for (let unit = 1; unit <= Math.min(longestUnit, text.length / 2); unit += 1)
    if (text.slice(unit) === text.slice(0, -unit)) return true;
  return false;
}

/** Returns the fewest pieces that make up a text; a piece is a known one or one character. */
function fewestPieces(text: string, longestPiece: number, isKnown: (piece: string) => boolean): number {
  const fewest = [0];
  for (let end = 1; end <= text.length; end += 1) {
    let best = (fewest[end - 1] ?? 0) + 1;
    for (let start = Math.max(0, end - longestPiece); start < end - 1; start += 1) {
      const pieces = (fewest[start] ?? 0) + 1;
      // Beyond the most pieces of a rejected password, how many more there are makes no difference.
      if (pieces <= guessablePieces && pieces < best && isKnown(text.slice(start, end))) best = pieces;
    }
    fewest.push(best);
  }
  return fewest.at(-1) ?? 0;
}
