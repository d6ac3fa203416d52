import { expect, it, vi } from 'vitest';
import { findChainPosition } from '#domain/audit-log/position.ts';
import { setupDatabase } from '#test/setup.ts';
import { writeEntries } from '#test/write-entries.ts';

it('finds the position of each action that is in the chain, also among entries with a link for each version', async () => {
  const { owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const key = await make.apiKey({ creator: await make.member({ orgId }) });
  const link = () =>
    vi.waitFor(
      async () => {
        const { rows } = await owner.pool.query('select linked, is_all_done from append_audit_chain(1000)');
        expect(rows[0]).toMatchObject({ linked: 0, is_all_done: true });
      },
      { timeout: 60_000, interval: 5 },
    );
  const ids: string[] = [];
  for (let round = 0; round < 12; round += 1) {
    for (let count = 0; count < round % 4; count += 1) {
      await owner.pool.query(
        `insert into audit_entry (at, organization_id, key_id, action, status, code)
         values (date_trunc('minute', now()), $1, $2, 'api.rate_limited', 429, 'rate_limited')
         on conflict (key_id, at) where action = 'api.rate_limited'
         do update set count = audit_entry.count + 1, serial = excluded.serial`,
        [orgId, key.id],
      );
      await link();
    }
    ids.push(...(await writeEntries(owner, [{ orgId, action: 'role.create', status: null }, { orgId }])));
    await link();
  }
  const { rows } = await owner.pool.query<{ id: string; month: string; position: number; hash: string }>(
    `select l.entry_id as id, to_char(l.month, 'YYYY-MM') as month, l.position::int as position,
       encode(l.hash, 'hex') as hash from audit_link l
     where l.organization_id = $1 and l.digest is null`,
    [orgId],
  );
  const linked = new Map(rows.map(({ id, ...place }) => [id, place]));
  expect(linked.size).toBeGreaterThanOrEqual(ids.length);
  for (const [id, place] of linked) expect(await findChainPosition(owner, orgId, id)).toEqual(place);

  const [later = ''] = await writeEntries(owner, [{ orgId, action: 'role.create', status: null }]);
  expect(await findChainPosition(owner, orgId, later)).toBeNull();
  expect(await findChainPosition(owner, await make.organization(), ids[0] ?? '')).toBeNull();
});
