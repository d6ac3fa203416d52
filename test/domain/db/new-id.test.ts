/** Ids that the database generates: UUID version 7, ordered within a connection. */
import { expect, it } from 'vitest';
import { setupDatabase } from '#test/setup.ts';

it('ids are UUIDs of version 7, contain the time, and keep the order of one connection', async () => {
  const { owner } = await setupDatabase();
  const from = Date.now();
  const { rows } = await owner.pool.query<{ id: string }>(
    'select new_id() as id, pg_sleep(0.00001) from generate_series(1, 2000)',
  );
  const ids = rows.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.map((id) => id.slice(0, 18))).toEqual(ids.map((id) => id.slice(0, 18)).toSorted());
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const ms = Number.parseInt(id.replace('-', '').slice(0, 12), 16);
    expect(Math.abs(ms - from)).toBeLessThan(600_000);
  }
});
