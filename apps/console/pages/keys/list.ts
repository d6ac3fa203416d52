import { z } from 'zod';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import { listEndedKeys, listValidKeys } from '#domain/keys/list.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { queryString } from '../../components/list-filter.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { keyListLabels } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { tabs } from '../../components/tabs.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isExpiringSoon, keyColumns } from './cells.ts';

/** Lists valid keys and, in a second tab, revoked, expired and inactive keys. */
export const listRoutes = [
  member.view({
    name: 'listKeys',
    path: '/keys',
    permission: 'org.keys.manage',
    query: z.object({ state: z.enum(['valid', 'ended']).catch('valid'), before: z.guid().nullable().catch(null) }),
    show: (visit, { state, before }) => (state === 'valid' ? validPage(visit) : endedPage(visit, before)),
  }),
];

async function validPage(visit: MemberVisit): Promise<Page> {
  const now = visit.console.now();
  const keys = await listValidKeys(visit.console.database, visit.organizationId, now);
  const soon = keys.filter((key) => isExpiringSoon(key, now)).length;
  const create = linkButton(visit.at('/keys/new'), 'Create API key');
  const report = linkButton(visit.at('/keys/compromised'), 'Report a leaked key', 'secondary');
  if (keys.length === 0)
    return page({
      title: 'API keys',
      actions: report,
      body: html`${stateTabs(visit, 'valid')}${emptyState({
        icon: 'keys',
        title: 'No API keys yet',
        body: html`API keys let your systems read your organization’s clients, members, seats and outcomes. A key can
          never read more than its creator, and can’t change anything.`,
        action: create,
      })}`,
    });
  return page({
    title: 'API keys',
    actions: html`${report}${create}`,
    body: html`
      ${stateTabs(visit, 'valid')}
      ${keys.length >= validKeysPerOrganization ? fullNotice(visit) : nothing}
      ${soon > 0 ? notice('warning', expiringSentence(soon)) : nothing}
      ${table({ caption: 'Active API keys', columns: keyColumns(visit), rows: keys })}
      <p class="quiet">${keys.length} of ${validKeysPerOrganization} active keys. Rate limit: 120 calls per minute and
        key. Calls are counted within a minute.</p>`,
  });
}

const expiringSentence = (count: number): string =>
  count === 1
    ? 'An API key expires within 14 days. Rotate it before then.'
    : `${count} API keys expire within 14 days. Rotate them before then.`;

const stateTabs = (visit: MemberVisit, here: 'valid' | 'ended'): Html =>
  tabs('API keys', [
    { label: keyListLabels.valid, href: visit.at('/keys'), isHere: here === 'valid' },
    { label: keyListLabels.ended, href: visit.at('/keys?state=ended'), isHere: here === 'ended' },
  ]);

const fullNotice = (visit: MemberVisit): Html =>
  notice(
    'warning',
    html`You have reached the maximum of ${validKeysPerOrganization} active API keys.
      <a href="${visit.at('/keys/new')}">View unused keys</a>`,
  );

async function endedPage(visit: MemberVisit, before: string | null): Promise<Page> {
  const { database, now } = visit.console;
  const { keys, older } = await listEndedKeys(database, visit.organizationId, before, now());
  const href = (cursor: string | null) => visit.at(`/keys${queryString({ state: 'ended', before: cursor })}`);
  return page({
    title: 'Revoked, expired and inactive keys',
    body: html`
      ${stateTabs(visit, 'ended')}
      ${
        keys.length === 0
          ? emptyState({
              icon: 'keys',
              title: 'No ended keys',
              body: 'Revoked, expired and inactive keys appear here.',
            })
          : table({ caption: 'Revoked, expired and inactive API keys', columns: keyColumns(visit), rows: keys })
      }
      ${pager({ isFirst: before === null, older, href })}`,
  });
}
