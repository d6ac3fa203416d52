import { listKeysOfCreator, type MemberKey } from '#domain/members/impact.ts';
import type { MemberDetails } from '#domain/members/list-members.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { badge } from '../../components/notice.ts';
import { describeScope } from '../../components/reads.ts';
import { table } from '../../components/table.ts';
import { displayName, formatCount } from '../../components/text.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Lists the valid API keys of which a member is the creator. */
export async function keysSection(visit: MemberVisit, { personId, status }: MemberDetails): Promise<Html> {
  const { database, now } = visit.console;
  const keys = await listKeysOfCreator(database, visit.organizationId, personId, now());
  return html`<section aria-labelledby="keys"><h2 id="keys">API keys</h2>
    ${
      keys.length === 0
        ? html`<p>No active API keys.</p>`
        : html`<p>API keys have at most the permissions of their
          creator${status === 'active' ? '' : ', so these are inactive'}. Before you change this member, you can review
          the affected keys.</p>
          ${table<MemberKey>({
            caption: 'Active API keys of this member',
            rows: keys,
            columns: [
              { heading: 'Key', main: true, cell: (key) => renderKeyName(visit, key) },
              { heading: 'Can read', cell: readsNow },
            ],
          })}`
    }</section>`;
}

function renderKeyName(visit: MemberVisit, { id, label, hint }: MemberKey): Html {
  const name = label === '' ? html`<code>${hint}</code>` : displayName(label);
  const linked = visit.may('org.keys.manage') ? html`<a href="${visit.at(`/keys/${id}`)}">${name}</a>` : name;
  return label === '' ? linked : html`${linked}<br><code>${hint}</code>`;
}

function readsNow({ scopes, working }: MemberKey): Html {
  if (working.length === 0) return badge('bad', 'Inactive');
  const lost = scopes.length - working.length;
  const note = badge('warning', formatCount(lost, 'permission inactive', 'permissions inactive'));
  return html`${working.map(describeScope).join(', ')} ${lost === 0 ? '' : note}`;
}
