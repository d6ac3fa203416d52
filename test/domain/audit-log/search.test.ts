/** Every filter finds its entries, in order, page by page in both directions. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import {
  type AuditEntry,
  type AuditLogFilter,
  type AuditLogPage,
  entriesSearched,
  everything,
  findAuditEntry,
  listAuditEntries,
  seesNoClients,
} from '#domain/audit-log/search.ts';
import type { Queryable } from '#domain/db/database.ts';
import { setupDatabase } from '#test/setup.ts';
import { writeEntries } from '#test/write-entries.ts';
import { eachAuditEntry } from '../../../apps/console/pages/audit-log/download.ts';
import { matchText } from '../../../apps/console/pages/audit-log/match-text.ts';

const listIds = ({ entries }: { entries: AuditEntry[] }) => entries.map(({ id }) => id);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

it('paging forward and back shows the same entries, also when many share a timestamp', async () => {
  const { owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const db = owner;
  await owner.pool.query(
    `insert into audit_entry (at, organization_id, action, status)
     select date_trunc('hour', now()) - make_interval(secs => (n / 7)), $1, 'api.getOrg', 200
       from generate_series(0, 99) n`,
    [orgId],
  );
  const { rows } = await owner.pool.query<{ id: string }>('select id from audit_entry order by at desc, id desc');
  const down: string[][] = [];
  let page = await listAuditEntries(db, orgId, everything, null, 15);
  expect(page.newer).toBeNull();
  down.push(listIds(page));
  while (page.older !== null) {
    page = await listAuditEntries(db, orgId, everything, { position: page.older, direction: 'older' }, 15);
    down.push(listIds(page));
  }
  expect(down.flat()).toEqual(rows.map(({ id }) => id));
  const up: string[][] = [listIds(page)];
  while (page.newer !== null) {
    page = await listAuditEntries(db, orgId, everything, { position: page.newer, direction: 'newer' }, 15);
    up.unshift(listIds(page));
  }
  expect(up.flat()).toEqual(rows.map(({ id }) => id));
});

it('each filter matches exactly its entries, and filters combine with AND', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ name: 'Ada Rivers' });
  const bo = await make.member({ orgId: ada.orgId, name: 'Bo Lindqvist' });
  const key = await make.apiKey({ creator: ada, label: 'Report' });
  await owner.pool.query('delete from audit_entry');
  const [read, rejected, old, made, strange] = await writeEntries(owner, [
    { orgId: ada.orgId, personId: ada.userId, keyId: key.id, at: minutesAgo(1), address: '203.0.113.4' },
    { orgId: ada.orgId, personId: ada.userId, keyId: key.id, at: minutesAgo(2), status: 403, code: 'forbidden' },
    { orgId: ada.orgId, personId: bo.userId, at: minutesAgo(90), action: 'api.listRoles' },
    { orgId: ada.orgId, personId: bo.userId, at: minutesAgo(3), action: 'role.create', status: null },
    { orgId: ada.orgId, at: minutesAgo(4), action: 'webhook.suspend', status: null },
  ]);
  const found = async (filter: Partial<AuditLogFilter>) =>
    listIds(await listAuditEntries(owner, ada.orgId, { ...everything, ...filter }, null, 50));
  expect(await found({})).toEqual([read, rejected, made, strange, old]);
  expect(await found({ keyId: key.id })).toEqual([read, rejected]);
  expect(await found({ personId: bo.userId })).toEqual([made, old]);
  expect(await found({ action: 'api.getOrg' })).toEqual([read, rejected]);
  expect(await found({ result: 'Succeeded' })).toEqual([read, old]);
  expect(await found({ result: 'Denied' })).toEqual([rejected]);
  expect(await found({ result: 'Completed' })).toEqual([made, strange]);
  expect(await found({ from: minutesAgo(3.5), to: minutesAgo(1.5) })).toEqual([rejected, made]);
  expect(await found({ keyId: key.id, result: 'Denied', personId: ada.userId, action: 'api.getOrg' })).toEqual([
    rejected,
  ]);
  expect(await found({ personId: bo.userId, result: 'Succeeded' })).toEqual([old]);
  expect(await found({ keyId: key.id, personId: bo.userId })).toEqual([]);
  expect(await found({ keyId: randomUUID() })).toEqual([]);
});

it('an entry has all that is stored of it, with current names', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ name: 'Ada Rivers' });
  const bo = await make.member({ orgId: ada.orgId, name: 'Bo Lindqvist' });
  const key = await make.apiKey({ creator: ada, label: 'Report' });
  const detail = { memberId: bo.userId, key: 'admin' };
  const [id = ''] = await writeEntries(owner, [
    {
      orgId: ada.orgId,
      personId: ada.userId,
      keyId: key.id,
      status: 403,
      code: 'forbidden',
      address: '2001:db8::7',
      detail,
    },
  ]);
  expect(await findAuditEntry(owner, ada.orgId, id)).toMatchObject({
    id,
    personId: ada.userId,
    personName: 'Ada Rivers',
    keyId: key.id,
    keyLabel: 'Report',
    action: 'api.getOrg',
    status: 403,
    code: 'forbidden',
    address: '2001:db8::7',
    count: 1,
    detail,
    memberName: 'Bo Lindqvist',
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
});

it('a text finds the entries of a person by the name of their time and by the current one', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ name: 'Ada Rivers' });
  await owner.pool.query('delete from audit_entry');
  await owner.pool.query(
    `insert into audit_entry (organization_id, person_id, action) values ($1, $2, 'role.create')`,
    [ada.orgId, ada.userId],
  );
  await owner.pool.query(`update membership set name = 'Ada Brook' where person_id = $1`, [ada.userId]);
  const found = async (text: string) => {
    const match = await matchText(owner, ada.orgId, text, seesNoClients);
    const { entries } = await listAuditEntries(owner, ada.orgId, { ...everything, text: match }, null, 50);
    return entries.map(({ action, personName }) => `${action} ${personName}`);
  };
  expect(await found('rivers')).toContain('role.create Ada Rivers');
  expect(await found('Brook')).toContain('role.create Ada Rivers');
  expect(await found('r%vers')).toEqual([]);
});

it('another organization’s entries appear on no page and in no file, and are not found by id', async () => {
  const { owner, make } = await setupDatabase();
  const organizationId = await make.organization();
  const theirs = await make.member();
  const key = await make.apiKey({ creator: theirs });
  const [id = ''] = await writeEntries(owner, [{ orgId: theirs.orgId, personId: theirs.userId, keyId: key.id }]);
  const db = owner;
  for (const filter of [everything, { ...everything, keyId: key.id }, { ...everything, personId: theirs.userId }]) {
    expect(listIds(await listAuditEntries(db, organizationId, filter, null, 50))).toEqual([]);
    for await (const batch of eachAuditEntry(db, organizationId, filter)) expect(batch).toEqual([]);
  }
  expect(await findAuditEntry(db, organizationId, id)).toBeNull();
  expect(await findAuditEntry(db, theirs.orgId, id)).not.toBeNull();
});

/**
 * Writes reads of one key, one a second, and as many of another read by another key. `met` is the
 * age (s) of the only entry that matches both.
 */
async function setupSeldom(met: number, others: number) {
  const { owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const [keyId, otherKeyId] = [randomUUID(), randomUUID()];
  await owner.pool.query(
    `insert into audit_entry (at, organization_id, person_id, key_id, action, status)
     select now() - make_interval(secs => n), $1::uuid, $2, $3::uuid, case n when $5 then 'api.listRoles'
       else 'api.getOrg' end, 200 from generate_series(1, $5::int) n
     union all select now() - make_interval(secs => n - 0.5), $1::uuid, $2, $4::uuid, 'api.listRoles', 200
       from generate_series(1, $6::int) n`,
    [orgId, userId, keyId, otherKeyId, met, others],
  );
  return { db: owner, orgId, keyId };
}

it('a search for a rare match stops after a bounded number of entries, and continues from there', async () => {
  const met = entriesSearched.inEntries * 2 + 500;
  const { db, orgId, keyId } = await setupSeldom(met, met);
  const filter = { ...everything, keyId, action: 'api.listRoles' };
  const pages: AuditLogPage[] = [await listAuditEntries(db, orgId, filter, null, 50)];
  for (let last = pages[0]; last !== undefined && last.older !== null; last = pages.at(-1))
    pages.push(await listAuditEntries(db, orgId, filter, { position: last.older, direction: 'older' }, 50));
  expect(pages.map(({ entries, isWhole }) => [entries.length, isWhole])).toEqual([
    [0, false],
    [0, false],
    [1, true],
  ]);
  let found = 0;
  for await (const batch of eachAuditEntry(db, orgId, filter)) found += batch.length;
  expect(found).toBe(1);
});

it('a search of a log that grows meanwhile finds each match once', async () => {
  const { owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const write = (from: number, to: number) =>
    owner.pool.query(
      `insert into audit_entry (at, organization_id, action, status, address)
       select now() - make_interval(secs => n), $1, 'api.getOrg', 200,
         case when abs(n - $4) <= 5 then inet '203.0.113.9' end from generate_series($2::int, $3::int) n`,
      [orgId, from, to, entriesSearched.inEntries - 10],
    );
  await write(0, entriesSearched.inEntries * 2);
  // Ten more before each statement, so the first one stops amid the eleven matches.
  const growing: Queryable = {
    ...owner,
    query: (async (statement: Parameters<Queryable['query']>[0]) => {
      await write(-100, -91);
      return owner.query(statement);
    }) as Queryable['query'],
  };
  const ids: string[] = [];
  for await (const batch of eachAuditEntry(growing, orgId, { ...everything, address: '203.0.113.9' }))
    ids.push(...listIds({ entries: batch }));
  expect([ids.length, new Set(ids).size]).toEqual([11, 11]);
});

it('a search that is rare in one of two ways reads all matches at once', async () => {
  const met = entriesSearched.inEntries * 2;
  const { db, orgId, keyId } = await setupSeldom(met, 3);
  const filter = { ...everything, keyId, action: 'api.listRoles' };
  expect(await listAuditEntries(db, orgId, filter, null, 50)).toMatchObject({
    entries: [{ keyId, action: 'api.listRoles' }],
    older: null,
    isWhole: true,
  });
});

it('rejections and actions of a key or a person are searched far back, in both directions', async () => {
  const { owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const db = owner;
  const keyId = randomUUID();
  // One entry in 500 matches. To find the rest, a search of the entries themselves would exceed its
  // limit.
  await owner.pool.query(
    `insert into audit_entry (at, organization_id, person_id, key_id, action, status)
     select now() - make_interval(secs => n), $1::uuid, case when n % 500 = 0 then $2 else 'usr_other' end, case
       when n % 500 = 0 then $3::uuid end,
       case when n % 2 = 0 then 'key.rotate' else 'api.getOrg' end, case when n % 2 = 1 then 403 end
     from generate_series(1, 9000) n
     union all select now() - make_interval(secs => n), $1::uuid, $2, $3::uuid, 'api.getOrg', 403
       from generate_series(9001, 9003) n`,
    [orgId, userId, keyId],
  );
  const filters: [Partial<AuditLogFilter>, number][] = [
    [{ action: 'key.rotate', personId: userId }, 18],
    [{ action: 'key.rotate', keyId, personId: userId, result: 'Completed' }, 18],
    [{ result: 'Completed', keyId }, 18],
    [{ result: 'Denied', keyId }, 3],
    [{ result: 'Denied', action: 'api.getOrg', personId: userId }, 3],
    [{ result: 'Denied', action: 'key.rotate' }, 0],
  ];
  for (const fields of [
    { result: 'Succeeded', action: 'key.rotate' },
    { result: 'Completed', action: 'api.getOrg' },
  ] as const)
    expect(await listAuditEntries(db, orgId, { ...everything, ...fields }, null, 50)).toMatchObject({ entries: [] });
  for (const [fields, count] of filters) {
    const filter = { ...everything, ...fields };
    const page = await listAuditEntries(db, orgId, filter, null, 50);
    expect([fields, page.entries.length, page.isWhole]).toEqual([fields, count, true]);
    const oldest = page.entries.at(-1);
    if (oldest === undefined) continue;
    const back = await listAuditEntries(db, orgId, filter, { position: oldest, direction: 'newer' }, 50);
    expect(listIds(back)).toEqual(listIds(page).slice(0, -1));
  }
});

it('a file has every entry once, in order', async () => {
  const { owner, make } = await setupDatabase();
  const orgId = await make.organization();
  await owner.pool.query(
    `insert into audit_entry (at, organization_id, action, status)
     select now() - make_interval(secs => n / 3), $1, 'api.getOrg', 200 from generate_series(1, 9001) n`,
    [orgId],
  );
  const seen: string[] = [];
  for await (const batch of eachAuditEntry(owner, orgId, everything)) seen.push(...listIds({ entries: batch }));
  const { rows } = await owner.pool.query<{ id: string }>('select id from audit_entry order by at desc, id desc');
  expect(seen).toEqual(rows.map(({ id }) => id));
});
