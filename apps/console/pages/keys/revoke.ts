import { z } from 'zod';
import { revokeKey } from '#domain/keys/revoke.ts';
import { type KeyUsage, listCallers } from '#domain/keys/usage.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { callersTable } from './callers.ts';
import { keyHintCell, keyName, keyTitle, statusOf } from './cells.ts';
import { getKey } from './find-key.ts';

/** Revoking a key, after a look at who would notice. */
export const revokeRoutes = [
  member.view({
    name: 'showRevokeKey',
    path: '/keys/:keyId/revoke',
    permission: 'org.keys.manage',
    query: z.object({ reported: z.literal('yes').nullable().catch(null) }),
    show: (visit, { reported }) => revokePage(visit, freshForm(), reported !== null),
  }),

  member.action({
    name: 'revokeKey',
    path: '/keys/:keyId/revoke',
    permission: 'org.keys.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { em, now } = visit.console;
      const key = await getKey(visit);
      const { organizationId } = visit.organization;
      await revokeKey(em, { organizationId, keyId: key.id, by: visit.by }, now);
      return redirect(visit.at(`/keys/${key.id}`), { flash: 'The key is revoked: from now on it opens nothing.' });
    },
    redraw: (visit, state) => revokePage(visit, state, false),
  }),
];

async function revokePage(visit: MemberVisit, state: FormState, isReported: boolean): Promise<Page> {
  const key = await getKey(visit);
  const parts = {
    breadcrumbs: [
      [keyTitle(key), visit.at(`/keys/${key.id}`)],
      ['API keys', visit.at('/keys')],
    ] as const,
  };
  if (key.state === 'revoked')
    return page({
      title: 'It is revoked already',
      ...parts,
      body: html`<p>The key ${keyName(key)} (${keyHintCell(key)}) opens nothing any more, whoever has it.</p>
        <p class="actions">${linkButton(visit.at('/keys'), 'To the API keys', 'secondary')}</p>`,
    });
  return page({
    title: 'Revoke the key?',
    ...parts,
    body: html`
      ${isReported ? notice('warning', html`The key you pasted is this one. Whoever else has it can read what it reads until you revoke it.`) : nothing}
      ${await consequences(visit, key)}
      ${form(visit, {
        action: visit.at(`/keys/${key.id}/revoke`),
        state,
        button: 'Revoke it for good',
        kind: 'danger',
        secondary: html`<a href="${visit.at(`/keys/${key.id}`)}">Keep it</a>`,
      })}`,
  });
}

async function consequences(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const callers = await listCallers(visit.console.pool, visit.organization.organizationId, key.id);
  return html`<p>The next call with it is answered 401, from everywhere, and there is no way back. To replace it without a gap, <a href="${visit.at(`/keys/${key.id}/rotate`)}">rotate it</a> instead.</p>
    ${detailList([
      ['Key', html`${keyName(key)} ${keyHintCell(key)} ${statusOf(key, visit.console.now())}`],
      ['Reads', key.scopes.join(', ')],
      ['Last use', relativeTime(key.lastUsedAt, 'never')],
      ['Uses in 24 hours', key.uses24h.toLocaleString('en')],
    ])}
    ${
      callers.length === 0
        ? html`<p>Nothing has called the API with it, as far as the activity log goes back: most likely nothing stops.</p>`
        : html`<h2>What will notice</h2>${callersTable(callers)}`
    }`;
}
