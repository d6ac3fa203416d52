import { createHash } from 'node:crypto';
import { reads } from '#domain/activity/sentences.ts';
import type { AffectedKey, Impact } from '#domain/organization/impact.ts';
import { displayName } from '../../components/display-name.ts';
import { hiddenField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import type { Page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';

/** What becomes of the keys together: whether one stops altogether, or each only reads less. */
function verdictOf(keys: readonly AffectedKey[]): string {
  const isOne = keys.length === 1;
  const what = isOne ? 'One API key' : `${keys.length} API keys`;
  if (!keys.some(({ losesAllScopes }) => losesAllScopes)) return `${what} ${isOne ? 'reads' : 'read'} less at once.`;
  return `${what} ${isOne ? 'stops' : 'stop'} at once.`;
}

/**
 * "Maker watch" in words: which keys and which reads a change stops. Source: issue of the console,
 * point 2.
 */
export function affectedKeys(keys: readonly AffectedKey[]): Html {
  if (keys.length === 0)
    return html`<p><strong>No API key stops.</strong> Nothing that reads from here depends on this.</p>`;
  return html`${notice('warning', html`<strong>${verdictOf(keys)}</strong> What is listed is refused from the next call on, with 403 forbidden:`)}
    <ul class="stops">${keys.map(
      (key) => html`<li>${nameOf(key)} ${
        key.losesAllScopes
          ? html`<strong>stops altogether</strong>. It reads:`
          : html`goes on, but can <strong>no longer read</strong>:`
      }
        <ul>${key.operations.map((operation) => html`<li>${reads[operation] ?? operation} <code>${operation}</code></li>`)}</ul></li>`,
    )}</ul>
    <p class="quiet">For reads that must go on, let somebody who stays make a key with the same scopes first, and change it in the system that uses it.</p>`;
}

const nameOf = ({ label, hint }: AffectedKey): Html =>
  label === '' ? html`<code>${hint}</code>` : html`“${displayName(label)}” (<code>${hint}</code>)`;

/**
 * Carries with a form what its page said would stop, so that nothing else stops than its person has
 * read.
 */
export const seenField = (keys: readonly AffectedKey[]): Html => hiddenField('seen', markOf(keys));

/** Whether what stops is still what the form's page said. */
export const hasSeen = (seen: string, keys: readonly AffectedKey[]): boolean => seen === markOf(keys);

/** The page drawn anew, since what would stop has changed meanwhile; nothing was done. */
export async function readAgain(draw: (state: FormState) => Promise<Page>): Promise<Page> {
  const problem = 'What this stops has changed since you opened the page, so nothing was done. Read it once more.';
  return { ...(await draw({ ...freshForm(), problem })), status: 422 };
}

const markOf = (keys: readonly AffectedKey[]): string =>
  createHash('sha256')
    .update(JSON.stringify(keys.map(({ id, scopes }) => [id, scopes])))
    .digest('base64url');

/**
 * What becomes of the clients of a member who goes (`whom`: the visitor, or somebody else). `href`
 * leads to them; null: not for the visitor to see.
 */
export function clientsThatStay({ activeGrants }: Impact, href: string | null, whom: 'you' | 'them' = 'them'): Html {
  if (activeGrants === 0) return html`<p>No family’s access is with ${whom}.</p>`;
  const families =
    activeGrants === 1 ? 'One family’s access stays' : `${activeGrants.toLocaleString('en')} families’ access stays`;
  return html`<p><strong>${families} with ${whom}</strong>, and their seats too, until somebody ends it or moves it to a colleague.
    ${href === null ? '' : html`<a href="${href}">See these clients</a>`}</p>`;
}
