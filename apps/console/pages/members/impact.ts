import { createHash } from 'node:crypto';
import { reads } from '#domain/activity/sentences.ts';
import type { AffectedKey, Impact } from '#domain/organization/impact.ts';
import { displayName } from '../../components/display-name.ts';
import { hiddenField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import type { Page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';

/** Summarizes the affected keys: whether one stops, or all lose only some reads. */
function summarize(keys: readonly AffectedKey[]): string {
  const isOne = keys.length === 1;
  const what = isOne ? '1 API key' : `${keys.length} API keys`;
  if (!keys.some(({ losesAllScopes }) => losesAllScopes)) return `${what} ${isOne ? 'loses' : 'lose'} permissions.`;
  return `${what} ${isOne ? 'stops' : 'stop'} working.`;
}

/** Lists the keys and reads that a change stops. */
export function affectedKeys(keys: readonly AffectedKey[]): Html {
  if (keys.length === 0) return html`<p>No API keys are affected.</p>`;
  return html`${notice(
    'warning',
    html`<strong>${summarize(keys)}</strong> The following reads return 403
    immediately:`,
  )}
    <ul class="stops">${keys.map(
      (key) => html`<li>${nameOf(key)} ${
        key.losesAllScopes ? html`<strong>stops working</strong>:` : html`can <strong>no longer read</strong>:`
      }
        <ul>${key.operations.map(
          (operation) => html`<li>${reads[operation] ?? operation}
          <code>${operation}</code></li>`,
        )}</ul></li>`,
    )}</ul>
    <p class="quiet">To avoid an interruption, ask another member to rotate these keys first.</p>`;
}

const nameOf = ({ label, hint }: AffectedKey): Html =>
  label === '' ? html`<code>${hint}</code>` : html`“${displayName(label)}” (<code>${hint}</code>)`;

/** Stores the impact that the page showed, so that an action never has another impact. */
export const seenField = (keys: readonly AffectedKey[]): Html => hiddenField('seen', markOf(keys));

/** Returns whether the impact is still the one that the form's page showed. */
export const hasSeen = (seen: string, keys: readonly AffectedKey[]): boolean => seen === markOf(keys);

/** What a person reads when the impact changed after the page was opened. */
export const changedImpact =
  'The affected API keys have changed since you opened this page. Nothing was changed. Review them again.';

/** Draws the page again, because the impact has changed. */
export async function reviewAgain(draw: (state: FormState) => Promise<Page>): Promise<Page> {
  return { ...(await draw({ ...freshForm(), problem: changedImpact })), status: 422 };
}

const markOf = (keys: readonly AffectedKey[]): string =>
  createHash('sha256')
    .update(JSON.stringify(keys.map(({ id, scopes }) => [id, scopes])))
    .digest('base64url');

/** Says that a member's clients stay with them. `href` leads to the clients; null: not visible. */
export function affectedClients({ activeGrants }: Impact, href: string | null, whom: 'you' | 'them' = 'them'): Html {
  if (activeGrants === 0) return html`<p>No clients are affected.</p>`;
  const clients = activeGrants === 1 ? '1 client stays' : `${activeGrants.toLocaleString('en')} clients stay`;
  return html`<p><strong>${clients} with ${whom}</strong>, including seats, until the access is ended or moved.
    ${href === null ? '' : html`<a href="${href}">View clients</a>`}</p>`;
}
