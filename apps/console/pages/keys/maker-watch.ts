import { reads } from '#domain/activity/sentences.ts';
import type { KeyUsage } from '#domain/keys/usage.ts';
import { listMakerRoles } from '#domain/keys/usage.ts';
import { type MemberChange, previewImpact } from '#domain/organization/impact.ts';
import { displayName } from '../../components/display-name.ts';
import { table } from '../../components/table.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** A change of the maker, in words, and the reads of the key that it would stop. */
interface Change {
  words: Html;
  stops: readonly string[];
  losesAllScopes: boolean;
}

/** Whose rights a live key rests on, and what stops when that person leaves or loses a role. */
export async function makerWatch(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const { pool, em, now } = visit.console;
  const { organizationId } = visit.organization;
  const roles = key.makerStatus === 'active' ? await listMakerRoles(pool, organizationId, key.makerId) : [];
  const changeOf = async (change: MemberChange, words: Html): Promise<Change> => {
    const { keys } = await previewImpact(em.fork(), organizationId, key.makerId, change, now());
    const stopping = keys.find(({ id }) => id === key.id);
    return { words, stops: stopping?.operations ?? [], losesAllScopes: stopping?.losesAllScopes ?? false };
  };
  const name = displayName(key.makerName);
  const changes = [await changeOf({ kind: 'remove' }, html`${name} leaves, is removed or suspended`)];
  for (const role of roles)
    changes.push(
      await changeOf({ kind: 'unassign', roleId: role.id }, html`${name} loses the role ${displayName(role.name)}`),
    );
  return html`<section aria-labelledby="maker"><h2 id="maker">Whose rights it rests on</h2>
    <p>The key acts for ${name}${key.makerStatus === 'active' ? '' : `, who is no active member (${key.makerStatus})`}. It can never read more than they may read at that moment. To let it rest on somebody else, let them rotate it.</p>
    ${table<Change>({
      caption: 'What stops when its maker’s rights change',
      columns: [
        { heading: 'When', main: true, cell: ({ words }) => words },
        { heading: 'What stops', cell: whatWouldStop },
      ],
      rows: changes,
    })}</section>`;
}

function whatWouldStop({ stops, losesAllScopes }: Change): Html {
  if (stops.length === 0) return html`Nothing: another role holds the same, or it stands still already.`;
  const what = stops.map((operation) => reads[operation] ?? operation).join(', ');
  return losesAllScopes ? html`<strong>Everything:</strong> ${what}` : html`${what}`;
}
