import { listFactors } from '#domain/identity/factors.ts';
import { problemNotice } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { detailList } from '../../components/table.ts';
import { unconfirmedNotice } from '../../components/unconfirmed.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { factorsSection } from './factors-section.ts';
import { recoverySection } from './recovery-section.ts';
import { sessionsSection } from './sessions-section.ts';

/** Renders the person's account. `state` is that of a refused form; its problem is at the top. */
export async function accountPage(visit: PersonVisit, state: FormState = freshForm()): Promise<Page> {
  const { session, console } = visit;
  const { factors, recoveryCodesLeft } = await listFactors(console.em, session);
  return page({
    title: 'Your account',
    body: html`${problemNotice(state)}
      ${detailList([
        ['Email address', session.email],
        ['Organizations', organizationList(visit)],
      ])}
      ${session.unconfirmed.length === 0 ? nothing : unconfirmedNotice(session.unconfirmed.length)}
      ${factorsSection(visit, factors)}
      ${recoverySection(visit, recoveryCodesLeft)}
      <section aria-labelledby="password"><h2 id="password">Password</h2>
        <p>Changing your password ends your other sessions.</p>
        <p class="actions">${linkButton('/account/password', 'Change password', 'secondary')}</p></section>
      ${await sessionsSection(visit)}`,
  });
}

/** Lists the person's organizations with links to leave. Some roles do not see the members page. */
const organizationList = ({ session }: PersonVisit): Html =>
  html`<ul class="plain-list">${session.memberships.map(
    ({ organizationId, organizationName }) =>
      html`<li><bdi>${organizationName}</bdi> ·
        <a href="/o/${organizationId}/leave">Leave<span class="visually-hidden"> ${organizationName}</span>…</a></li>`,
  )}</ul>`;
