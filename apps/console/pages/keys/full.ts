import { liveKeysPerOrganization } from '#domain/contract/limits.ts';
import type { KeyUsage } from '#domain/keys/usage.ts';
import { truncate } from '../../components/display-name.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { type Page, page } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isUnused, keyColumns } from './cells.ts';

/**
 * Stands where a key would be made while 25 are live: says why there is an end to it, and which key
 * to give up.
 */
export function fullPage(visit: MemberVisit, live: readonly KeyUsage[]): Page {
  const now = visit.console.now();
  const longestUnused = [...live].sort((a, b) => lastSeen(a) - lastSeen(b));
  const unused = longestUnused.filter((key) => isUnused(key, now)).length;
  return page({
    title: 'Make an API key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    status: 200,
    body: html`
      ${notice('warning', `Your organization has ${live.length} live keys, and ${liveKeysPerOrganization} is the most there can be. Revoke one to make another.`)}
      <p>The limit keeps keys few enough for somebody to know what each is for. A system needs one key; one that gets a new key has its old one rotated, not left beside it.</p>
      <p>${
        unused === 0
          ? 'Each of them was used within the last 30 days. They stand here in the order of their last use, the longest ago first.'
          : `${unused === 1 ? 'One of them was' : `${unused} of them were`} not used for 30 days or more; most likely nothing stops when you revoke ${unused === 1 ? 'it' : 'them'}. The longest unused comes first.`
      }</p>
      ${table({
        caption: 'Live API keys, the longest unused first',
        columns: keyColumns(visit, ['Key', 'Made by', 'Last use']),
        rows: longestUnused,
        actions: ({ id, label, hint }) =>
          linkButton(
            visit.at(`/keys/${id}/revoke`),
            html`Revoke<span class="visually-hidden"> ${truncate(label || hint, 60)}</span>…`,
            'secondary',
          ),
      })}`,
  });
}

/** A key that was never used counts as used when it was made: it may not be in place yet. */
const lastSeen = ({ lastUsedAt, createdAt }: KeyUsage) => (lastUsedAt ?? createdAt).getTime();
