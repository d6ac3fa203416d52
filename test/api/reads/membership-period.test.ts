/**
 * A key belongs to the membership period in which it was created. After its creator has left it
 * gets 403, also after the creator returns.
 */
import { expect, it } from 'vitest';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import { acceptEnrolment } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { createKey } from '#domain/keys/create.ts';
import { listKeys } from '#domain/keys/list.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import { removeMember } from '#domain/members/change.ts';
import type { MadeMember } from '#test/make.ts';
import { type Enrolled, setupPeople, visitor } from '#test/people.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { startTestApi, type TestApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { importDocument } from '../../import/document.ts';
import { expectErrorResponse } from '../error-response.ts';

type People = Awaited<ReturnType<typeof setupPeople>>;
type Write = (people: People, member: Pick<Enrolled, 'orgId' | 'personId' | 'email' | 'token'>) => Promise<unknown>;

const withStatus =
  (status: string): Write =>
  async ({ owner }, { orgId, personId }) =>
    owner.pool.query('update membership set status = $3 where organization_id = $1 and person_id = $2', [
      orgId,
      personId,
      status,
    ]);

const imported =
  (status: string): Write =>
  async ({ database, owner }, { orgId, personId, email }) => {
    const { rows } = await owner.pool.query('select name, slug, kind, status from organization where id = $1', [orgId]);
    const person = { userId: personId, name: 'Ada Rivers', email, title: null, status, roleKeys: ['admin'] };
    const organization = { id: orgId, ...rows[0], createdAt: '2026-01-01T00:00:00.000Z', members: [person] };
    await importDocument(database.ownerUrl, { region: 'us', asOf: '2026-11-20', organizations: [organization] });
  };

const ends: Record<string, Write> = {
  'an operator removed them': ({ owner }, { orgId, personId }) =>
    removeMember(owner, { organizationId: orgId, personId, by: 'orgctl' }),
  'an import wrote that they left': imported('left'),
  'a statement of the owner said so': withStatus('left'),
};

const returns: Record<string, Write> = {
  'a new invitation that they accepted': async (people, { orgId, email, token: session }) => {
    const { db, now, owner } = people;
    const invitation = { organizationId: orgId, email, by: 'orgctl', roleKeys: ['admin'] } as const;
    const { token } = await createEnrolment(owner, invitation, now);
    await acceptEnrolment(db, await people.session(session), { token, visitor }, now);
  },
  'an import that has them active': imported('active'),
};

/** The response of each of the nine reads. */
async function expectEach(api: TestApi, orgId: string, key: string, expected: number | RegExp) {
  for (const { resource } of endpoints) {
    const response = await api.get(`/v1/orgs/${orgId}${resource}`, { key });
    if (typeof expected === 'number') expect([resource, response.status]).toEqual([resource, expected]);
    else await expectErrorResponse(response, 'forbidden', expected);
  }
}

const left = /has left the organization/;
const cases = Object.entries(ends).flatMap(([end, leave]) =>
  Object.entries(returns).map(([back, comeBack]) => ({ end, leave, back, comeBack })),
);

it.each(cases)('once $end, a key gets 403 from every read, also after $back', async ({ leave, comeBack }) => {
  const people = await setupPeople();
  const api = await startTestApi(people.database);
  // A second organization keeps their session.
  const member = await people.enrol({ roleKey: 'admin' });
  await people.make.member({ orgId: member.orgId });
  const elsewhere = await people.make.organization();
  await people.owner.pool.query(
    `insert into membership (organization_id, person_id, name, email, status) values ($1, $2, 'Ada', $3, 'active')`,
    [elsewhere, member.personId, member.email],
  );
  const creator: MadeMember = { orgId: member.orgId, userId: member.personId, roleId: null };
  const old = await people.make.apiKey({ creator });
  await expectEach(api, member.orgId, old.key, 200);

  await leave(people, member);
  await expectEach(api, member.orgId, old.key, left);
  await comeBack(people, member);
  await expectEach(api, member.orgId, old.key, left);

  const fresh = await people.make.apiKey({ creator });
  await expectEach(api, member.orgId, fresh.key, 200);
});

it('a key works again after its creator’s suspension, which is the same period of membership', async () => {
  const people = await setupPeople();
  const api = await startTestApi(people.database);
  const member = await people.enrol({ roleKey: 'admin' });
  const { key } = await people.make.apiKey({ creator: { orgId: member.orgId, userId: member.personId, roleId: null } });
  await withStatus('suspended')(people, member);
  await expectEach(api, member.orgId, key, /no longer an active member/);
  await withStatus('active')(people, member);
  await expectEach(api, member.orgId, key, 200);
});

it.each(Object.entries(ends))(
  'once %s, their keys are inactive, have freed their numbers and cannot be rotated',
  async (_end, leave) => {
    const people = await setupPeople();
    const { db, make } = people;
    const member = await people.enrol({ roleKey: 'admin' });
    const other = await make.member({ orgId: member.orgId });
    const creator: MadeMember = { orgId: member.orgId, userId: member.personId, roleId: null };
    for (let made = 0; made < validKeysPerOrganization; made += 1) await make.apiKey({ creator });
    await expect(make.apiKey({ creator: other })).rejects.toMatchObject({ reason: 'too_many_keys' });

    await leave(people, member);
    const keys = await listKeys(db, member.orgId, new Date());
    expect(keys.map(({ state }) => state)).toEqual(Array(validKeysPerOrganization).fill('inactive'));
    const [first] = keys;
    const rotation = { organizationId: member.orgId, keyId: first?.id ?? '', overlapSeconds: 60, expiresAt: null };
    await expect(rotateKey(db, { ...rotation, by: { personId: other.userId } }, testKeySecrets)).rejects.toMatchObject({
      reason: 'key_not_live',
    });
    for (let made = 0; made < validKeysPerOrganization; made += 1) await make.apiKey({ creator: other });
    await expect(make.apiKey({ creator: other })).rejects.toMatchObject({ reason: 'too_many_keys' });
  },
);

it('a key that is created while its creator leaves is rejected, or ends with the membership', async () => {
  const people = await setupPeople();
  const { db, owner } = people;
  const outcomes = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const { orgId, userId: personId } = await people.make.member({ roleKey: 'admin' });
      const member = { orgId, personId, email: `${personId}@example.org`, token: '' };
      const input = { organizationId: member.orgId, by: { personId: member.personId }, scopes: ['org.read'] as const };
      const creating = createKey(db, { ...input, label: '', expiresAt: null }, testKeySecrets).then(
        () => 'created',
        (error: { reason?: string }) => error.reason,
      );
      const leaving = n % 2 === 0 ? withStatus('left') : (ends['an operator removed them'] as Write);
      const [created] = await Promise.all([creating, leaving(people, member)]);
      await withStatus('active')(people, member);
      const { rows } = await owner.pool.query<{ valid: number }>(
        'select count(*)::int as valid from api_key where organization_id = $1 and creator_left_at is null',
        [member.orgId],
      );
      return { created, valid: rows[0]?.valid };
    }),
  );
  for (const outcome of outcomes)
    expect(outcome).toEqual({ created: expect.toBeOneOf(['created', 'not_an_active_member']), valid: 0 });
});

it('a key waits for a removal in progress, and is then rejected', async () => {
  const people = await setupPeople();
  const { db, owner } = people;
  const member = await people.enrol({ roleKey: 'admin' });
  const client = await owner.pool.connect();
  try {
    await client.query('begin');
    await client.query(`update membership set status = 'left' where organization_id = $1`, [member.orgId]);
    const input = { organizationId: member.orgId, by: { personId: member.personId }, scopes: ['org.read'] as const };
    const creating = createKey(db, { ...input, label: '', expiresAt: null }, testKeySecrets);
    creating.catch(() => {});
    await expect
      .poll(async () => (await owner.pool.query(`select from pg_locks where not granted`)).rows.length)
      .toBeGreaterThan(0);
    await client.query('commit');
    await expect(creating).rejects.toMatchObject({ reason: 'not_an_active_member' });
  } finally {
    client.release();
  }
});
