import { z } from 'zod';
import { liveKeysPerOrganization } from '#domain/contract/limits.ts';
import { listEndedKeys, listLiveKeys } from '#domain/keys/usage.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { table } from '../../components/table.ts';
import { type Page, page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isExpiringSoon, keyColumns } from './cells.ts';

/** The keys that work, and on a page of their own those that no longer do. */
export const listRoutes = [
  member.view({
    name: 'listKeys',
    path: '/keys',
    permission: 'org.keys.manage',
    query: z.object({ state: z.enum(['live', 'ended']).catch('live'), before: z.uuid().nullable().catch(null) }),
    show: (visit, { state, before }) => (state === 'live' ? livePage(visit) : endedPage(visit, before)),
  }),
];

async function livePage(visit: MemberVisit): Promise<Page> {
  const now = visit.console.now();
  const keys = await listLiveKeys(visit.console.pool, visit.organization.organizationId, now);
  const soon = keys.filter((key) => isExpiringSoon(key, now)).length;
  const makeKey = linkButton(visit.at('/keys/new'), 'Make a key');
  if (keys.length === 0)
    return page({
      title: 'API keys',
      body: html`${emptyState({
        title: 'No key works yet',
        body: html`<p>A key lets a system of yours read what your organization may see: its clients, members, seats and outcomes. It reads with the rights of the person who makes it, and can change nothing.</p>`,
        action: makeKey,
      })}
      <p class="actions">${otherLinks(visit)}</p>`,
    });
  return page({
    title: 'API keys',
    body: html`
      ${keys.length >= liveKeysPerOrganization ? full(visit) : nothing}
      ${soon > 0 ? notice('warning', `${soon === 1 ? 'A key expires' : `${soon} keys expire`} within 14 days. Rotate it before: for up to 7 days the old key and its successor both work.`) : nothing}
      <p class="actions">${makeKey}${otherLinks(visit)}</p>
      ${table({ caption: 'Live API keys', columns: keyColumns(visit), rows: keys })}
      <p class="quiet">${keys.length} of ${liveKeysPerOrganization} live keys. Each may call 120 times a minute.</p>`,
  });
}

const full = (visit: MemberVisit): Html =>
  notice(
    'warning',
    html`${liveKeysPerOrganization} keys are live, the most there can be. <a href="${visit.at('/keys/new')}">See which ones nobody uses</a> before you make the next.`,
  );

const otherLinks = (visit: MemberVisit): Html =>
  html`${linkButton(visit.at('/keys/compromised'), 'A key got out', 'secondary')}<a href="${visit.at('/keys?state=ended')}">Revoked, expired and inactive keys</a>`;

async function endedPage(visit: MemberVisit, before: string | null): Promise<Page> {
  const { pool, now } = visit.console;
  const { keys, older } = await listEndedKeys(pool, visit.organization.organizationId, before, now());
  const href = (cursor: string) => visit.at(`/keys?state=ended&before=${cursor}`);
  return page({
    title: 'Revoked, expired and inactive keys',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      ${
        keys.length === 0
          ? emptyState({
              title: 'None here',
              body: 'Keys that were revoked, have expired or became inactive are kept here.',
            })
          : table({ caption: 'Revoked, expired and inactive API keys', columns: keyColumns(visit), rows: keys })
      }
      ${pager({ newer: null, older, href, ...(before === null ? {} : { firstHref: visit.at('/keys?state=ended') }) })}`,
  });
}
