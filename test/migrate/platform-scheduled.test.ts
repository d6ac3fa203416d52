/** Schema `platform`: access that lies ahead. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { beginDueGrantsSql, endDueGrantsSql } from '#domain/clients/due-grants.ts';
import { setupPlatform } from '#test/platform.ts';
import { openPool } from '#test/webhook-rows.ts';

const hour = 3_600_000;
const ahead = (ms: number) => new Date(Date.now() + ms);

async function setupScheduled() {
  const t = await setupPlatform();
  const { organization, member, family } = await t.create();
  const values = { organization, member: 'usr_bo', name: 'Bo', email: 'bo@example.org', roles: [] };
  expect(await t.call('put_member', values)).toBe('created');
  const worker = await openPool(t.database.urls.worker, 1);
  const id = randomUUID();
  const start = { organization, id, kind: 'attorney', professional: member, family, since: ahead(hour) };
  return {
    ...t,
    organization,
    id,
    start,
    async listGrants(): Promise<string[]> {
      const { rows } = await t.client.query(
        'select status, professional from platform.client_grant order by since, id',
      );
      return rows.map(({ status, professional }) => `${professional === member ? 'ada' : 'bo'} ${status}`);
    },
    /** Lets the begin of a grant come, and its end when it has one. */
    async comes(grant: string, isEnd = false): Promise<void> {
      await t.owner.pool.query(
        `update client_grant set since = clock_timestamp() - interval '1 s',
           ends_at = case when $2 then clock_timestamp() else ends_at end where id = $1`,
        [grant, isEnd],
      );
    },
    async maintain(): Promise<void> {
      await worker.query(beginDueGrantsSql);
      await worker.query(endDueGrantsSql);
    },
  };
}

describe('access that lies ahead', () => {
  it('is scheduled without an event, has no seat, and begins once its time has come', async () => {
    const { call, organization, id, start, listGrants, listEvents, comes, maintain } = await setupScheduled();
    const seat = { organization, id: randomUUID(), grant_id: id };
    expect(await call('start_grant', start)).toBe('created');
    expect(await call('start_grant', start)).toBe('unchanged');
    expect(await call('give_seat', seat)).toBe('23514 grant_not_active: scheduled');
    await maintain();
    expect([await listGrants(), await listEvents()]).toEqual([['ada scheduled'], []]);
    await comes(id);
    await maintain();
    await maintain();
    expect([await listGrants(), await listEvents()]).toEqual([['ada active'], ['client.started']]);
    expect(await call('give_seat', seat)).toBe('created');
  });

  it('begins within a minute of the clock of the caller as access that begins now', async () => {
    const { call, start, organization, id, listEvents } = await setupScheduled();
    expect(await call('start_grant', { ...start, since: ahead(20_000) })).toBe('created');
    expect(await call('give_seat', { organization, id: randomUUID(), grant_id: id })).toBe('created');
    expect(await listEvents()).toEqual(['client.started', 'seat.given']);
  });

  it('is withdrawn by an end before it begins: nothing is sent, and no repeat gives it again', async () => {
    const { call, organization, id, start, listGrants, listEvents, comes, maintain, count } = await setupScheduled();
    await call('start_grant', start);
    expect(await call('end_grant', { organization, id, ended_at: ahead(-hour) })).toBe('changed');
    const entries = await count('audit_entry');
    for (const reason of ['ended', 'moved'])
      expect(await call('end_grant', { organization, id, reason })).toBe('unchanged');
    expect(await call('start_grant', start)).toBe('unchanged');
    expect(await count('audit_entry')).toBe(entries);
    await comes(id);
    await maintain();
    expect([await listGrants(), await listEvents()]).toEqual([['ada withdrawn'], []]);
    const never = 'withdrawn before it began';
    const other = { organization, id, new_id: randomUUID(), professional: 'usr_bo' };
    expect(await call('plan_end', { organization, id, ends_at: ahead(hour) })).toBe(`23514 grant_has_ended: ${never}`);
    expect(await call('move_grant', other)).toBe(`23514 grant_has_ended: ${never}`);
    const seat = { organization, id: randomUUID(), grant_id: id };
    expect(await call('give_seat', seat)).toBe('23514 grant_not_active: withdrawn');
  });

  it('moves to another member before it begins, and begins once at the same time', async () => {
    const { call, organization, id, start, listGrants, listEvents, comes, maintain } = await setupScheduled();
    const next = randomUUID();
    const move = { organization, id, new_id: next, professional: 'usr_bo' };
    await call('start_grant', { ...start, ends_at: ahead(2 * hour) });
    expect(await call('move_grant', { ...move, professional: start.professional })).toMatch(/ same_professional: /);
    expect(await call('move_grant', move)).toBe('changed');
    expect(await call('move_grant', move)).toBe('unchanged');
    expect(await call('end_grant', { organization, id })).toBe('unchanged');
    expect((await listGrants()).toSorted()).toEqual(['ada withdrawn', 'bo scheduled']);
    const again = { ...start, id: next, professional: 'usr_bo' };
    expect(await call('start_grant', again)).toBe('unchanged');
    await comes(next);
    await maintain();
    expect(await listEvents()).toEqual(['client.started']);
  });

  it('has a planned end that lies after its begin, and may lose it', async () => {
    const { call, organization, id, start } = await setupScheduled();
    await call('start_grant', start);
    const plan = (ends_at: Date | null) => call('plan_end', { organization, id, ends_at });
    expect(await plan(ahead(-1))).toBe('22023 ends_in_past: ends_at');
    expect(await plan(ahead(hour / 2))).toBe('22023 ends_before_it_begins: ends_at');
    expect([await plan(ahead(2 * hour)), await plan(null), await plan(null)]).toEqual([
      'changed',
      'changed',
      'unchanged',
    ]);
  });

  it('has both events in order when it began and ended while no worker ran', async () => {
    const { call, id, start, listGrants, listEvents, comes, maintain } = await setupScheduled();
    await call('start_grant', { ...start, ends_at: ahead(2 * hour) });
    await comes(id, true);
    await maintain();
    expect([await listGrants(), await listEvents()]).toEqual([['ada ended'], ['client.started', 'client.ended']]);
  });

  it.each<[string, string[], string[]]>([
    ['end_grant', ['ada ended'], ['client.started', 'client.ended']],
    ['move_grant', ['ada ended', 'bo active'], ['client.started', 'client.ended', 'client.started']],
    ['give_seat', ['ada active'], ['client.started', 'seat.given']],
    ['plan_end', ['ada active'], ['client.started']],
  ])('has begun for %s once its time has come, also before the worker wrote it', async (name, grants, events) => {
    const { call, organization, id, start, listGrants, listEvents, comes, maintain, owner } = await setupScheduled();
    await call('start_grant', start);
    await comes(id);
    const values: Record<string, Record<string, unknown>> = {
      end_grant: { id },
      move_grant: { id, new_id: randomUUID(), professional: 'usr_bo' },
      give_seat: { id: randomUUID(), grant_id: id },
      plan_end: { id, ends_at: ahead(hour) },
    };
    expect(await call(name, { organization, ...values[name] })).toMatch(/^(changed|created)$/);
    await maintain();
    expect([await listGrants(), await listEvents()]).toEqual([grants, events]);
    const { rows } = await owner.pool.query('select sum(changes)::int as changes from ledger_count');
    expect(rows).toEqual([{ changes: events.length }]);
  });

  it('has ended for every call once its planned end has passed, as after the worker wrote it', async () => {
    const { call, organization, id, start, maintain, owner, client } = await setupScheduled();
    const [first, second] = [id, randomUUID()];
    const results: string[][] = [];
    const ends = new Date(Date.now() - 60_000);
    for (const grant of [first, second]) {
      await call('start_grant', { ...start, id: grant, since: ahead(-hour), ends_at: ahead(hour) });
      await owner.pool.query('update client_grant set ends_at = $2 where id = $1', [grant, ends]);
      if (grant === second) await maintain();
      const values: [string, Record<string, unknown>][] = [
        ['end_grant', { id: grant, ended_at: ahead(-1000) }],
        ['end_grant', { id: grant, reason: 'moved' }],
        ['plan_end', { id: grant, ends_at: ahead(hour) }],
        ['move_grant', { id: grant, new_id: randomUUID(), professional: 'usr_bo' }],
        ['give_seat', { id: randomUUID(), grant_id: grant }],
        ['end_grant', { id: grant, ended_at: ends }],
        ['end_grant', { id: grant }],
      ];
      const got: string[] = [];
      for (const [name, of] of values) got.push(await call(name, { organization, ...of }));
      results.push(got);
    }
    expect(results[0]).toEqual(results[1]);
    expect(results[0]?.slice(-3)).toEqual(['23514 grant_not_active: ended', 'unchanged', 'unchanged']);
    expect(results[0]?.[0]).toBe(`23514 grant_has_ended: ended at ${ends.toISOString()}`);
    const { rows } = await client.query('select distinct status, ends_at from platform.client_grant');
    expect(rows).toEqual([{ status: 'ended', ends_at: ends }]);
  });

  it('is withdrawn by the erasure of its family; what has begun by the clock ends with both events', async () => {
    const { call, client, id, start, listGrants, listEvents, comes } = await setupScheduled();
    const due = randomUUID();
    for (const grant of [id, due]) await call('start_grant', { ...start, id: grant });
    await comes(due);
    const { rows } = await client.query(
      `select c -> 'counts' ->> 'grantsWithdrawn' as withdrawn, c -> 'counts' ->> 'grantsEnded' as ended
       from jsonb_array_elements(platform.erase_family($1, 'case-1')) c`,
      [start.family],
    );
    expect(rows).toEqual([{ withdrawn: '1', ended: '1' }]);
    expect([await listGrants(), await listEvents()]).toEqual([
      ['ada ended', 'ada withdrawn'],
      ['client.started', 'client.ended'],
    ]);
  });
});
