import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import type { KeyUsage } from '#domain/keys/list.ts';
import { html } from '#runtime/pages/html.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { formatCount } from '../../components/text.ts';
import { type Page, page } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getLastUse, isUnused, keyColumns, keyTitle } from './cells.ts';

/** Replaces the form at the limit of valid keys. Lists the keys to revoke, longest unused first. */
export function fullPage(visit: MemberVisit, validKeys: readonly KeyUsage[]): Page {
  const now = visit.console.now();
  const longestUnused = [...validKeys].sort((a, b) => getLastUse(a) - getLastUse(b));
  const unused = longestUnused.filter((key) => isUnused(key, now)).length;
  return page({
    title: 'Create API key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      ${notice(
        'warning',
        `Your organization has ${validKeys.length} active API keys. The maximum is ${validKeysPerOrganization}. ` +
          'Revoke a key to create another.',
      )}
      <p>Use one key per system. To replace a key, rotate it instead of creating another.</p>
      <p>${
        unused === 0
          ? 'All keys were used within the last 30 days.'
          : `${formatCount(unused, 'key was', 'keys were')} not used for 30 days or more.`
      } The longest unused comes first.</p>
      ${table({
        caption: 'Active API keys, longest unused first',
        columns: keyColumns(visit, ['Key', 'Creator', 'Last used']),
        rows: longestUnused,
        actions: (key) =>
          linkButton(
            visit.at(`/keys/${key.id}/revoke`),
            html`Revoke<span class="visually-hidden"> ${keyTitle(key)}</span>…`,
            'secondary',
          ),
      })}`,
  });
}
