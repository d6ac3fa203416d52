import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type Actor,
  assertHolds,
  assertMayTouch,
  assertOwnerRemains,
  getActor,
  getMember,
  lockOrganization,
  type MemberAccess,
} from '../access/actor.ts';
import { type Authority, askerOf } from '../access/authority.ts';
import { OrganizationRefused } from '../access/organization-refused.ts';
import { recordActivity } from '../activity/record.ts';
import { runStatement, sql } from '../db/statement.ts';
import { endSessionsOfStranger } from '../identity/sessions.ts';

/**
 * Members of an organization: who they are, and whether they may act. All of it asks for
 * `org.members.manage`, and for an owner where an owner is changed. Inviting is `createEnrolment`
 * (identity/enrolment.ts). Keys a member made stop with them at once, since each read asks for its
 * maker; `previewImpact` tells beforehand.
 */

/** Which member, and who asks. */
export interface MemberRequest {
  organizationId: string;
  personId: string;
  by: Authority;
}

const longestText = 200;

/**
 * Changes what the organization calls a member; what is left out stays. @throws OrganizationRefused
 */
export async function changeMember(
  em: EntityManager,
  input: MemberRequest & { name?: string; title?: string | null },
): Promise<void> {
  await changing(em, input, 'member.change', async (tx, _member, _actor) => {
    const changed = (['name', 'title'] as const).filter((field) => input[field] !== undefined);
    if (changed.length === 0) throw new OrganizationRefused('nothing_to_change', 'Say what to change: name or title.');
    const name = input.name?.trim() ?? null;
    const title = input.title?.trim() || null;
    if (name === '' || [name, title].some((text) => text !== null && text.length > longestText))
      throw new OrganizationRefused(
        'field_refused',
        `A name has 1 to ${longestText} characters, a title at most as many.`,
      );
    await runStatement(
      tx,
      sql`
      update membership set name = coalesce(${name}, name), title = case when ${input.title !== undefined} then ${title} else title end
      where organization_id = ${input.organizationId} and person_id = ${input.personId}`,
    );
    return { changed };
  });
}

/**
 * Takes a member's access away until they are reinstated: their keys stop, their sessions see the
 * organization no more. @throws OrganizationRefused `last_owner` and others
 */
export async function suspendMember(em: EntityManager, input: MemberRequest): Promise<void> {
  await changing(em, input, 'member.suspend', async (tx, member) => {
    if (member.status === 'suspended') throw wrongStatus('The member is suspended already.');
    await takeAway(tx, input, member, 'suspended');
    return {};
  });
}

/**
 * Gives a suspended member back what their roles say, which the one who asks must hold. Who was
 * suspended before they accepted their invitation is `invited` again, without a link. @throws
 * OrganizationRefused `not_held` and others
 */
export async function reinstateMember(em: EntityManager, input: MemberRequest): Promise<void> {
  await changing(em, input, 'member.reinstate', async (tx, member, actor) => {
    if (member.status !== 'suspended') throw wrongStatus('Only a suspended member can be reinstated.');
    assertHolds(actor, member.permissions);
    await setStatus(tx, input, member.accepted ? 'active' : 'invited');
    return {};
  });
}

/**
 * Removes a member, who has then left, with all their roles; whoever removes themselves needs no
 * permission. Their row stays, since access and log name it.
 *
 * @throws OrganizationRefused `last_owner` and others.
 */
export async function removeMember(em: EntityManager, input: MemberRequest): Promise<void> {
  await changing(em, input, 'member.remove', async (tx, member) => {
    await takeAway(tx, input, member, 'left');
    await runStatement(
      tx,
      sql`
      delete from membership_role where organization_id = ${input.organizationId} and person_id = ${input.personId}`,
    );
    return { status: member.status };
  });
}

/**
 * The frame of each change: lock, who asks, whom, the change, its line. `work` returns what the
 * line tells beside the member.
 */
async function changing(
  em: EntityManager,
  { organizationId, personId, by }: MemberRequest,
  action: string,
  work: (tx: EntityManager, member: MemberAccess, actor: Actor) => Promise<Record<string, unknown>>,
): Promise<void> {
  await em.fork().transactional(async (tx) => {
    await lockOrganization(tx, organizationId);
    const isLeaving = action === 'member.remove' && by !== 'operator' && by.personId === personId;
    const actor = isLeaving ? leaver(personId) : await getActor(tx, organizationId, by, 'org.members.manage');
    const member = await getMember(tx, organizationId, personId);
    if (!isLeaving) assertMayTouch(actor, member);
    const detail = await work(tx, member, actor);
    await recordActivity(tx, {
      organizationId,
      ...askerOf(by),
      action,
      detail: { memberId: personId, ...detail },
    });
  });
}

const leaver = (personId: string): Actor => ({ personId, permissions: new Set(), isOwner: false });

async function setStatus(
  tx: EntityManager,
  { organizationId, personId }: MemberRequest,
  status: MemberAccess['status'],
) {
  await runStatement(
    tx,
    sql`
    update membership set status = ${status} where organization_id = ${organizationId} and person_id = ${personId}`,
  );
}

/**
 * Sets the status of a member who loses access, and ends the sessions of a person with no
 * organization left. A trigger of the status ends links and confirmations.
 *
 * @throws OrganizationRefused `last_owner`
 */
async function takeAway(tx: EntityManager, input: MemberRequest, member: MemberAccess, status: 'suspended' | 'left') {
  const { organizationId, personId } = input;
  if (member.isOwner && member.status === 'active') await assertOwnerRemains(tx, organizationId, personId);
  await setStatus(tx, input, status);
  await endSessionsOfStranger(tx, personId);
}

const wrongStatus = (message: string) => new OrganizationRefused('wrong_status', message);
