import { type Html, html } from '../web/html.ts';

/**
 * Characters of a name that a list shows. What people type is shorter; what an import brings may
 * have 10,000.
 */
const shownInList = 120;

/**
 * A name that somebody typed or imported, at most its first 120 characters, set apart because it
 * may be in any script and direction.
 */
export const displayName = (name: string): Html => html`<bdi>${truncate(name, shownInList)}</bdi>`;

/** The beginning of a text, whole characters, with … when there is more. */
export function truncate(text: string, max: number): string {
  if (text.length <= max) return text;
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max).join('')}…`;
}
