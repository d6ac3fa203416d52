/**
 * The hash chains of the audit log: which changes they detect, and that late commits do not
 * break them.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type AppendedRow,
  type AuditAnchor,
  appendAuditChainSql,
  listAuditAnchorsSql,
} from '#domain/audit-log/chain.ts';
import { verifyAuditLog } from '#domain/audit-log/verify.ts';
import type { Database } from '#domain/db/database.ts';
import { setupDatabase } from '#test/setup.ts';
import { writeEntries } from '#test/write-entries.ts';

const everything = { organizationId: null, month: null };
const patient = { timeout: 20_000, interval: 20 };

async function setup() {
  const { database, owner, make } = await setupDatabase();
  const worker = await connect(database.urls.worker);
  const orgId = await make.organization();
  const verify = async (anchors: AuditAnchor[] = []) => {
    const { faults } = await verifyAuditLog(owner, everything, anchors);
    return faults.map(({ fault, entryId }) => (entryId === null ? fault : `${fault} ${entryId}`)).sort();
  };
  return { database, owner, worker, orgId, make, verify };
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const append = async (worker: pg.Client, atMost = 1_000): Promise<AppendedRow> =>
  (await worker.query<AppendedRow>(appendAuditChainSql, [atMost])).rows[0] as AppendedRow;

const countUnlinked = async (owner: Database): Promise<number> =>
  (
    await owner.pool.query(
      `select count(*)::int as n from audit_entry a where not exists (select from audit_link l where l.entry_id = a.id)`,
    )
  ).rows[0].n;

/** Links every committed entry. */
const linkAll = (worker: pg.Client, owner: Database) =>
  vi.waitFor(async () => {
    await append(worker);
    expect(await countUnlinked(owner)).toBe(0);
  }, patient);

/** Six entries of one organization, linked. The first two have names. */
async function setupLinked() {
  const t = await setup();
  const entries = [1, 2, 3, 4, 5, 6].map((n) => ({
    orgId: t.orgId,
    action: 'seat.give',
    status: n <= 2 ? null : 200,
    detail: { n },
  }));
  const ids = await writeEntries(t.owner, entries);
  await linkAll(t.worker, t.owner);
  expect(await t.verify()).toEqual([]);
  return { ...t, ids };
}

describe('the chain of the audit log', () => {
  it('links every entry once, in order, per organization and month, in portions of any size', async () => {
    const t = await setup();
    const other = await t.make.organization();
    const lastMonth = new Date(Date.now() - 40 * 86_400_000);
    for (const orgId of [t.orgId, other])
      await writeEntries(t.owner, [{ orgId }, { orgId, at: lastMonth }, { orgId, address: '203.0.113.7' }, { orgId }]);
    await vi.waitFor(async () => {
      await append(t.worker, 3);
      expect(await countUnlinked(t.owner)).toBe(0);
    }, patient);
    const { rows } = await t.owner.pool.query<{ positions: number[] }>(
      `select array_agg(position::int order by position) as positions from audit_link
       group by organization_id, month order by count(*)`,
    );
    expect(rows.map(({ positions }) => positions)).toEqual([[1], [1], [1, 2, 3], [1, 2, 3]]);
    expect(await verifyAuditLog(t.owner, everything)).toEqual({ chains: 4, entries: 8, anchors: 0, faults: [] });
  });

  it('takes an entry that commits late at a late position, passes over none, and links no rolled-back one', async () => {
    const t = await setup();
    const [late, undone] = [await connect(t.database.ownerUrl), await connect(t.database.ownerUrl)];
    const insert = `insert into audit_entry (id, organization_id, action) values ($1, $2, 'seat.give')`;
    const [lateId, earlyId] = [randomUUID(), randomUUID()];
    for (const client of [late, undone]) await client.query('begin');
    await late.query(insert, [lateId, t.orgId]);
    await undone.query(insert, [randomUUID(), t.orgId]);
    await t.owner.pool.query(insert, [earlyId, t.orgId]);
    // The oldest transaction is open: entries that committed after it wait, and no transaction
    // waits for the chain.
    for (let run = 0; run < 3; run += 1) expect(await append(t.worker)).toMatchObject({ linked: 0 });
    await late.query('commit');
    await undone.query('rollback');
    await linkAll(t.worker, t.owner);
    const { rows } = await t.owner.pool.query('select entry_id as id from audit_link order by position');
    expect(rows).toEqual([{ id: lateId }, { id: earlyId }]);
    expect(await t.verify()).toEqual([]);
  });

  it('stays whole while many writers commit and it is appended at the same time', async () => {
    const t = await setup();
    let isWriting = true;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      const client = await connect(t.database.ownerUrl);
      for (let n = 0; n < 40; n += 1) {
        await client.query('begin');
        await client.query(`insert into audit_entry (organization_id, action) values ($1, 'seat.give')`, [t.orgId]);
        await client.query('select pg_sleep($1)', [((writer + n) % 4) / 500]);
        await client.query(n % 5 === 0 ? 'rollback' : 'commit');
      }
    });
    const appending = (async () => {
      while (isWriting) await append(t.worker, 7);
    })();
    await Promise.all(writers);
    isWriting = false;
    await appending;
    await linkAll(t.worker, t.owner);
    expect(await verifyAuditLog(t.owner, everything)).toMatchObject({ entries: 128, faults: [] });
  });

  it('follows an entry that counts requests while it grows, and finds it changed afterwards', async () => {
    const t = await setup();
    const creator = await t.make.member();
    const key = await t.make.apiKey({ creator });
    const reject = () =>
      t.owner.pool.query(
        `select api.record_rejections(array[k.fingerprint], array[2]) from api_key k where k.id = $1`,
        [key.id],
      );
    await reject();
    await linkAll(t.worker, t.owner);
    await reject();
    await vi.waitFor(async () => {
      await append(t.worker);
      // Two versions of one entry, or two entries when a minute ended between the calls.
      expect((await t.owner.pool.query('select from audit_link where digest is not null')).rowCount).toBe(2);
    }, patient);
    expect(await t.verify()).toEqual([]);
    const { rows } = await t.owner.pool.query<{ id: string }>(
      `update audit_entry set count = 1 where action = 'api.rate_limited' returning id`,
    );
    expect(await t.verify()).toEqual(rows.map(({ id }) => `changed ${id}`).sort());
  });

  it('keeps its last hash when retention drops the month, and the rest verifies', async () => {
    const t = await setup();
    const old = new Date(Date.now() - 200 * 86_400_000);
    await writeEntries(t.owner, [{ orgId: t.orgId, at: old }, { orgId: t.orgId, at: old }, { orgId: t.orgId }]);
    await linkAll(t.worker, t.owner);
    const anchors = await listAnchors(t.worker);
    await t.worker.query('select drop_old_audit_entries(150)');
    const { rows } = await t.owner.pool.query(
      `select length::int, hash = dropped_hash as kept, (select count(*)::int from audit_link l
         where l.organization_id = c.organization_id and l.month = c.month) as links
       from audit_chain c order by month`,
    );
    expect(rows).toEqual([
      { length: 2, kept: true, links: 0 },
      { length: 1, kept: null, links: 1 },
    ]);
    expect(await t.verify(anchors)).toEqual([]);
  });

  it('is appended while a login that wrote no entry keeps a transaction open', async () => {
    const t = await setup();
    for (const login of ['api', 'console', 'platform'] as const) {
      const open = await connect(t.database.urls[login]);
      await open.query('begin isolation level repeatable read');
      await open.query('select pg_current_xact_id()');
    }
    const ids = await writeEntries(t.owner, [{ orgId: t.orgId }, { orgId: t.orgId }]);
    expect(await append(t.worker)).toEqual({ linked: ids.length, isAllDone: true });
    // Such a transaction may still write an entry, which then gets the next position.
    const late = await connect(t.database.ownerUrl);
    await late.query('begin');
    await late.query('select pg_current_xact_id()');
    await writeEntries(t.owner, [{ orgId: t.orgId }]);
    expect(await append(t.worker)).toEqual({ linked: 1, isAllDone: true });
    await late.query(`insert into audit_entry (organization_id, action) values ($1, 'seat.give')`, [t.orgId]);
    await late.query('commit');
    expect(await append(t.worker)).toEqual({ linked: 1, isAllDone: true });
    expect(await t.verify()).toEqual([]);
  });

  it('is not appended by a transaction that would not see entries that were committed meanwhile', async () => {
    const t = await setup();
    await t.worker.query('begin isolation level repeatable read');
    await expect(append(t.worker)).rejects.toThrow(/read committed/);
  });
});

const listAnchors = async (worker: pg.Client): Promise<AuditAnchor[]> =>
  (await worker.query<AuditAnchor>(listAuditAnchorsSql, [100])).rows;

/** Records that the names of an entry were erased. */
const recordErasure = (entry: string, organization = '(select organization_id from audit_chain)') =>
  `insert into audit_entry (organization_id, action, detail)
   values (${organization}, 'family.erase', jsonb_build_object('entries', jsonb_build_array(${entry}::text)))`;

describe('verifying the audit log', () => {
  it.each([
    ['a changed entry', `update audit_entry set detail = '{"n": 7}' where id = $3`, ['changed 3']],
    ['changed names', `update audit_entry set names = '{"person": "Ada"}' where id = $1`, ['changed 1']],
    [
      'names that were changed with their salt',
      `update audit_entry set names = '{"person": "Ada"}', names_salt = 'x' where id = $1`,
      ['changed 1'],
    ],
    [
      'names that were changed with their digest',
      `update audit_entry set names = '{}', names_salt = 'x', names_digest = audit_names_digest('x', '{}')
        where id = $1`,
      ['changed 1'],
    ],
    ['names that were removed', 'update audit_entry set names = null, names_salt = null where id = $1', ['changed 1']],
    [
      'names that were removed, beside the erasure of those of another entry',
      `update audit_entry set names = null, names_salt = null where id in ($1, $2); ${recordErasure('$2')}`,
      ['changed 1'],
    ],
    [
      'names that an erasure removed which is not linked and comes not next',
      `update audit_entry set names = null, names_salt = null where id = $1; ${recordErasure('$1')};
       update audit_entry set serial = 1000000 where action = 'family.erase'`,
      ['changed 1'],
    ],
    [
      'names that were removed, which an entry of another organization lists',
      `update audit_entry set names = null, names_salt = null where id = $1; ${recordErasure('$1', '$0')}`,
      ['changed 1'],
    ],
    [
      'names that were added',
      `update audit_entry set names = '{"person": "Ada"}', names_salt = 'x' where id = $3`,
      ['changed 3'],
    ],
    [
      'names that were added with a digest',
      `update audit_entry set names = '{}', names_salt = 'x', names_digest = audit_names_digest('x', '{}')
        where id = $3`,
      ['changed 3'],
    ],
    ['a changed time', `update audit_entry set at = at + interval '1 ms' where id = $3`, ['inserted 3', 'removed 3']],
    ['an entry that was moved away', 'update audit_entry set organization_id = $0 where id = $3', ['end', 'removed 3']],
    ['a removed entry', 'delete from audit_entry where id = $3', ['removed 3']],
    [
      'an entry that was removed with its link',
      'delete from audit_link where entry_id = $3; delete from audit_entry where id = $3',
      ['link_missing 4'],
    ],
    [
      'an entry that was removed at the end',
      'delete from audit_link where entry_id = $6; delete from audit_entry where id = $6',
      ['end'],
    ],
    ['a replaced hash', `update audit_link set hash = sha256('x') where entry_id = $3`, ['changed 3', 'changed 4']],
    [
      'an inserted entry',
      `insert into audit_entry (id, organization_id, action, serial) select $0, organization_id, 'seat.give', 1
        from audit_chain`,
      ['inserted 0'],
    ],
    [
      'an entry that was linked twice',
      `insert into audit_link select organization_id, month, 7, entry_id, entry_at, null, hash from audit_link
        where entry_id = $3`,
      ['inserted 3'],
    ],
  ] as const)('finds %s', async (_name, statement, expected) => {
    const t = await setupLinked();
    const ids = [randomUUID(), ...t.ids];
    await t.owner.pool.query(statement.replace(/\$(\d)/g, (_, index: string) => `'${ids[Number(index)]}'`));
    const found = await t.verify();
    const named = found.map((fault) => fault.replace(/ (.*)/, (_, id: string) => ` ${ids.indexOf(id)}`));
    expect(named.sort()).toEqual(expected);
  });

  it('accepts that names were erased, before and after their erasure is linked', async () => {
    const t = await setupLinked();
    const [id] = t.ids;
    await t.owner.pool.query(
      `update audit_entry set names = null, names_salt = null where id = '${id}'; ${recordErasure(`'${id}'`)}`,
    );
    expect(await t.verify()).toEqual([]);
    await linkAll(t.worker, t.owner);
    expect(await t.verify()).toEqual([]);
    await t.owner.pool.query(`update audit_entry set detail = detail - 'n' where id = '${id}'`);
    expect(await t.verify()).toEqual([`changed ${id}`]);
  });

  it.each([
    ['inside the owner’s floor', `update audit_chain set dropped_length = length, dropped_hash = hash`],
    [
      'later than the log of purges says',
      `update audit_chain set dropped_length = length, dropped_hash = hash;
       insert into audit_purge select c.month::timestamp at time zone 'UTC', now() + interval '10 years', 90
         from audit_chain c`,
    ],
    [
      'by a purge that is younger than its floor',
      `update audit_chain set dropped_length = length, dropped_hash = hash;
       alter table audit_purge drop constraint audit_purge_older_than_floor;
       insert into audit_purge select (c.month + interval '1 month') at time zone 'UTC', now(), 90
         from audit_chain c`,
    ],
  ])('finds a month that was dropped %s', async (_name, statements) => {
    const t = await setupLinked();
    const anchors = await listAnchors(t.worker);
    await t.owner.pool.query(`delete from audit_entry; delete from audit_link; ${statements}`);
    expect(await t.verify(anchors)).toEqual(['dropped']);
  });

  it('finds an entry that was added with an old time, although it was linked', async () => {
    const t = await setupLinked();
    // In the same month, and more than an hour before the entries that were linked first.
    const [newest] = await writeEntries(t.owner, [{ orgId: t.orgId, at: new Date('2026-03-20T12:00:00Z') }]);
    const [id] = await writeEntries(t.owner, [{ orgId: t.orgId, at: new Date('2026-03-20T10:00:00Z') }]);
    expect(newest).not.toBe(id);
    await linkAll(t.worker, t.owner);
    expect(await t.verify()).toEqual([`backdated ${id}`]);
  });

  describe('with anchors kept elsewhere, of a chain that the owner computed again,', () => {
    const [recompute, purge] = [
      `truncate audit_link, audit_chain; update audit_progress set linked_to = 0`,
      `update audit_chain set dropped_length = length, dropped_hash = hash`,
    ];

    /** Anchors after two, four and six entries. */
    async function setupAnchored() {
      const t = await setup();
      const [ids, anchors]: [string[], AuditAnchor[]] = [[], []];
      for (let day = 0; day < 3; day += 1) {
        ids.push(...(await writeEntries(t.owner, [{ orgId: t.orgId }, { orgId: t.orgId }])));
        await linkAll(t.worker, t.owner);
        anchors.push(...(await listAnchors(t.worker)));
      }
      expect(anchors.map(({ length }) => length)).toEqual([2, 4, 6]);
      expect(await t.verify(anchors)).toEqual([]);
      return { ...t, ids, anchors };
    }

    it.each([
      ['a changed entry', `update audit_entry set status = 403 where id = $6`, { positions: [5, 6], entry: 5 }],
      ['a removed entry', 'delete from audit_entry where id = $5', { positions: [5, 6], entry: 6 }],
      ['the removed last entries', 'delete from audit_entry where id in ($5, $6)', { positions: [5, 6], entry: null }],
      [
        'an inserted entry',
        `insert into audit_entry (id, organization_id, action, serial)
          select $0, organization_id, 'seat.give', serial from audit_entry where id = $5`,
        { positions: [5, 6], entry: null },
      ],
      [
        'a changed entry of an earlier day',
        `update audit_entry set status = 403 where id = $4`,
        { positions: [3, 4], entry: 3 },
      ],
      ['a dropped month', 'delete from audit_entry', { positions: [1, 2], entry: null }],
    ] as const)('names the first entry, or its range: %s', async (_name, statement, { positions, entry }) => {
      const t = await setupAnchored();
      const ids = [randomUUID(), ...t.ids];
      await t.owner.pool.query(statement.replace(/\$(\d)/g, (_, index: string) => `'${ids[Number(index)]}'`));
      await t.owner.pool.query(recompute);
      await linkAll(t.worker, t.owner);
      expect(await t.verify()).toEqual([]);
      // An anchor of the changed chain, which the worker sent afterwards, does not narrow the range.
      const { faults } = await verifyAuditLog(t.owner, everything, [...t.anchors, ...(await listAnchors(t.worker))]);
      const [from, toPosition] = positions;
      expect(faults).toMatchObject([{ organizationId: t.orgId, position: from, toPosition, fault: 'anchor' }]);
      const { rows } = await t.owner.pool.query('select entry_id as id from audit_link where position = $1', [from]);
      expect(faults[0]?.entryId).toBe(rows[0]?.id ?? null);
      if (entry !== null) expect(faults[0]?.entryId).toBe(ids[entry]);
    });

    it('finds a dropped month of which only the last hash was kept', async () => {
      const t = await setupAnchored();
      await t.owner.pool.query(`update audit_entry set status = 403 where id = '${t.ids[5]}'; ${recompute}`);
      await linkAll(t.worker, t.owner);
      await t.owner.pool.query(`${purge}; delete from audit_entry; delete from audit_link`);
      expect(await t.verify(t.anchors)).toEqual(['anchor', 'dropped']);
    });
  });
});
