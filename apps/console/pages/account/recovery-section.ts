import { confirm } from '../../components/confirm.ts';
import { countOf } from '../../components/count.ts';
import { notice } from '../../components/notice.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { PersonVisit } from '../../web/visit.ts';

/** Renders how many recovery codes are left, with a form to create new ones. */
export function recoverySection(visit: PersonVisit, left: number): Html {
  return html`<section aria-labelledby="recovery"><h2 id="recovery">Recovery codes</h2>
    ${left <= 3 ? notice('warning', fewLeft(left)) : nothing}
    <p>${left} unused. Each replaces your second factor once.</p>
    ${confirm(visit, {
      summary: 'Create new codes…',
      consequences: html`<p>Your current recovery codes stop working.</p>`,
      action: '/account/recovery-codes',
      button: 'Create recovery codes',
      kind: 'primary',
    })}</section>`;
}

const fewLeft = (left: number): string =>
  left === 0
    ? 'You have no recovery codes left.'
    : `You have ${countOf(left, 'recovery code', 'recovery codes')} left.`;
