import { z } from 'zod';
import { type KeyUsage, listCallers } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { callersTable } from './callers.ts';
import { keyBreadcrumbs, keyHintCell, keyName, lastUse, quotedKey, recentUses, renderStatus } from './cells.ts';
import { getKey } from './find-key.ts';

/** Revokes a key, after a page that shows its callers. */
export const revokeRoutes = member.formPage({
  pageName: 'showRevokeKey',
  name: 'revokeKey',
  path: '/keys/:keyId/revoke',
  permission: 'org.keys.manage',
  stepUp: true,
  query: z.object({ reported: z.literal('yes').nullable().catch(null) }),
  form: z.object({}),
  async act(visit) {
    const { database, now } = visit.console;
    const { id } = await getKey(visit);
    await revokeKey(database, { ...visit.request, keyId: id }, now);
    return redirect(visit.at(`/keys/${id}`), { flash: 'API key revoked.' });
  },
  render: revokePage,
});

const reportedNotice = notice('warning', 'You pasted this key. Anyone who has it can use it until you revoke it.');

async function revokePage(
  visit: MemberVisit,
  state: FormState,
  { reported }: { reported: 'yes' | null },
): Promise<Page> {
  const key = await getKey(visit);
  const breadcrumbs = keyBreadcrumbs(visit, key);
  if (key.state === 'revoked')
    return page({
      title: 'API key already revoked',
      breadcrumbs,
      body: html`<p>API key ${keyName(key)} (${keyHintCell(key)}) no longer works.</p>
        <p class="actions">${linkButton(visit.at('/keys'), 'View API keys', 'secondary')}</p>`,
    });
  return page({
    title: `Revoke ${quotedKey(key)}?`,
    breadcrumbs,
    body: html`
      ${reported === null ? nothing : reportedNotice}
      ${await consequences(visit, key)}
      ${form(visit, {
        state,
        button: `Revoke ${quotedKey(key)}`,
        kind: 'danger',
        cancel: visit.at(`/keys/${key.id}`),
      })}`,
  });
}

async function consequences(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const callers = await listCallers(visit.console.database, visit.organizationId, key.id);
  const instead = html`To replace the key without an interruption, <a href="${visit.at(`/keys/${key.id}/rotate`)}">
    rotate it</a> instead.`;
  return html`<p>All further calls with this key return 401. You can’t undo this.
    ${key.state === 'valid' && key.successorId === null ? instead : nothing}</p>
    ${detailList([
      ['Key', html`${keyName(key)} ${keyHintCell(key)} ${renderStatus(key, visit.console.now())}`],
      ['Permissions', key.scopes.join(', ')],
      ['Last used', lastUse(key)],
      ['Calls in 24 hours', recentUses(key)],
    ])}
    ${
      callers.length === 0
        ? html`<p>No calls in the audit log.</p>`
        : html`<h2>Affected callers</h2>${callersTable(callers)}`
    }`;
}
