/** The one handle: changes are transactions, and everything else is a statement of its own. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { Organization } from '#domain/access/membership.entity.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';

const newOrganization = () => {
  const id = randomUUID();
  return { id, name: 'Quartz', slug: `org-${id}`, kind: 'other', status: 'active', createdAt: new Date() };
};

it('a change commits as a whole, and reads outside it see nothing of it before', async () => {
  const { owner } = await setupDatabase();
  const organization = newOrganization();
  const { id } = organization;
  const count = () => owner.query(sql<{ n: number }>`select count(*)::int as n from organization where id = ${id}`);
  const result = await owner.change(async (tx) => {
    tx.create(Organization, organization);
    await tx.flush();
    await tx.query(sql`update organization set name = 'Heron' where id = ${id}`);
    expect(await tx.query(sql`select name from organization where id = ${id}`)).toEqual([{ name: 'Heron' }]);
    expect([await count(), await owner.count(Organization, { id })]).toEqual([[{ n: 0 }], 0]);
    return 'done';
  });
  expect(result).toBe('done');
  expect(await owner.findOne(Organization, { id })).toMatchObject({ name: 'Heron' });
});

it('a change that fails changes nothing, neither by entities nor by statements', async () => {
  const { owner } = await setupDatabase();
  const organization = newOrganization();
  const failing = owner.change(async (tx) => {
    tx.create(Organization, organization);
    await tx.flush();
    await tx.query(sql`insert into seat_plan (organization_id, invoiced) values (${organization.id}, 0)`);
    throw new Error('rejected');
  });
  await expect(failing).rejects.toThrow('rejected');
  expect(await owner.count(Organization, { id: organization.id })).toBe(0);
});

it('a read returns the row as it is, whatever was read before', async () => {
  const { owner } = await setupDatabase();
  const organization = newOrganization();
  const { id } = organization;
  await owner.change(async (tx) => void tx.create(Organization, organization));
  const before = await owner.findOneOrFail(Organization, { id });
  await owner.query(sql`update organization set name = 'Heron' where id = ${id}`);
  expect([before.name, (await owner.findOneOrFail(Organization, { id })).name]).toEqual(['Quartz', 'Heron']);
  expect((await owner.find(Organization, { id })).map(({ name }) => name)).toEqual(['Heron']);
});

it('closing waits for the statement under way, also while its connection is made, and rejects the next', async () => {
  const { database } = await setupDatabase();
  const server = parsePostgresUrl(database.ownerUrl);
  const opened = await openDatabase({ server, applicationName: 'test', poolMax: 1 });
  const first = opened.query(sql`select 1 as one`);
  const closed = opened.close();
  const next = opened.query(sql`select 2 as two`);
  await expect(next).rejects.toThrow('after calling end on the pool');
  await Promise.allSettled([first]);
  await closed;
  expect([opened.pool.ended, opened.pool.totalCount]).toEqual([true, 0]);
});
