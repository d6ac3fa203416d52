import { type KeyUsage, listCreatorRoles } from '#domain/keys/list.ts';
import { type MemberChange, previewImpact } from '#domain/members/impact.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { describeReads } from '../../components/reads.ts';
import { table } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** A change of the creator and the operations that the key would lose. */
interface Change {
  description: Html;
  lost: readonly string[];
  losesAllScopes: boolean;
}

/** Shows a valid key's creator, and which reads stop when they leave or lose a role. */
export async function creatorSection(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const { console, organizationId } = visit;
  const { database, now } = console;
  const roles = key.creatorStatus === 'active' ? await listCreatorRoles(database, organizationId, key.creatorId) : [];
  const previewChange = async (change: MemberChange, description: Html): Promise<Change> => {
    const { keys } = await previewImpact(database, organizationId, key.creatorId, change, now());
    const affected = keys.find(({ id }) => id === key.id);
    return { description, lost: affected?.operations ?? [], losesAllScopes: affected?.losesAllScopes ?? false };
  };
  const name = displayName(key.creatorName);
  const changes = [await previewChange({ kind: 'remove' }, html`${name} leaves, is removed or suspended`)];
  for (const role of roles)
    changes.push(
      await previewChange({ kind: 'unassign', roleId: role.id }, html`${name} loses role ${displayName(role.name)}`),
    );
  return html`<section aria-labelledby="creator"><h2 id="creator">Creator</h2>
    <p>The key acts for
      ${name}${key.creatorStatus === 'active' ? '' : `, who is not an active member (${key.creatorStatus})`}. It can
      never read more than its creator can. To change the creator, ask another member to rotate the key.</p>
    ${table<Change>({
      caption: 'Impact of changes to the creator',
      columns: [
        { heading: 'Change', main: true, cell: ({ description }) => description },
        { heading: 'Lost access to', cell: lostReads },
      ],
      rows: changes,
    })}</section>`;
}

function lostReads({ lost, losesAllScopes }: Change): Html {
  if (lost.length === 0) return html`None. Another role includes them, or they are already inactive.`;
  return html`${losesAllScopes ? html`<strong>All:</strong> ` : nothing}${describeReads(lost)}`;
}
