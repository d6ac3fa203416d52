import { passwordMaxLength, passwordMinLength } from '#domain/identity/limits.ts';
import { type Html, html } from '#runtime/pages/html.ts';

/** Characters of a name that lists show; an imported name may have 10,000. */
const maxShown = 120;

/** Renders a typed or imported name, at most 120 characters, isolated from the text around it. */
export const displayName = (name: string): Html => html`<bdi>${truncate(name, maxShown)}</bdi>`;

/** Returns a family's name within a sentence, such as "the Rivers family". */
export const nameFamily = (name: string): string => `the ${name}${/family$/i.test(name) ? '' : ' family'}`;

/** Returns the first `max` whole characters of a text, with … if there are more. */
export function truncate(text: string, max: number): string {
  if (text.length <= max) return text;
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max).join('')}…`;
}

/** Returns a number with its noun: `1 event`, `2,400 events`. */
export const formatCount = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** The rules for a new password, as its field shows them. */
export const passwordHint =
  `${passwordMinLength} to ${passwordMaxLength} characters. We recommend several words. ` +
  'Common passwords and your own names aren’t allowed.';
