import { confirm } from '../../components/confirm.ts';
import { notice } from '../../components/notice.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { PersonVisit } from '../../web/visit.ts';

/** The section of the account page. */
export function recoverySection(visit: PersonVisit, left: number): Html {
  return html`<section aria-labelledby="recovery"><h2 id="recovery">Recovery codes</h2>
    ${left <= 3 ? notice('warning', left === 0 ? 'You have no recovery code left.' : `Only ${left} of your recovery codes ${left === 1 ? 'is' : 'are'} left.`) : nothing}
    <p>${left} unused. Each replaces your second factor once.</p>
    ${confirm(visit, {
      summary: 'Make new ones…',
      consequences: html`<p>All codes that you have now stop working.</p>`,
      action: '/account/recovery-codes',
      button: 'Make new recovery codes',
      kind: 'primary',
    })}</section>`;
}
