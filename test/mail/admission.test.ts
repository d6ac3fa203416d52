/** Which mail is admitted next, and what that costs. */
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { admitMailSql } from '../../apps/worker/mail/sql.ts';

async function setUp() {
  const { owner, make } = await setupDatabase();
  const client = await owner.pool.connect();
  onTestFinished(() => client.release());
  const run = async <T extends object>(text: string, values: unknown[] = []) =>
    (await client.query<T>(text, values)).rows;
  return {
    make,
    run,
    /** Makes organizations, each with a mail to its security contact that waits. */
    makeWaiting: (count: number, due: string) =>
      run(
        `with made as (
           insert into organization (name, slug, kind, status)
           select 'Harbor', gen_random_uuid()::text, 'law_firm', 'active' from generate_series(1, $1) returning id)
         insert into mail (organization_id, kind, address, due_at)
         select id, 'key.create', 'security@example.org', now() + $2::interval from made`,
        [count, due],
      ),
    /** Returns how many pages an admission reads, with its plans made. */
    async countPages() {
      await run('analyze mail');
      let pages = 0;
      for (let time = 0; time < 2; time += 1) {
        await run('begin');
        const [row] = await run<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
          `explain (analyze, buffers, format json) ${admitMailSql}`,
        );
        await run('rollback');
        const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = row?.['QUERY PLAN'][0].Plan ?? {};
        pages = hit + read;
      }
      return pages;
    },
  };
}

it('does the same work however many organizations have mails that wait, due or not', async () => {
  const t = await setUp();
  await t.makeWaiting(3, '9 minutes');
  const few = await t.countPages();
  await t.makeWaiting(3_000, '9 minutes');
  expect((await t.countPages()) / few).toBeLessThan(3);

  await t.makeWaiting(500, '0');
  const due = await t.countPages();
  await t.run(`update mail set due_at = now()`);
  await t.run('vacuum mail');
  expect((await t.countPages()) / due).toBeLessThan(3);
});

it('serves the queues in turn, with each kind of notice as one of them', async () => {
  const t = await setUp();
  await t.makeWaiting(20, '9 minutes');
  await t.run(`delete from mail`);
  await t.run(
    `insert into audit_chain (organization_id, month, length, hash)
     select id, '2026-10-01', 7, sha256('x') from organization`,
  );
  await t.run(
    `insert into notice (organization_id, kind, subject_id, step)
     select id, 'audit_log.anchor', id, '2026-10' from organization`,
  );
  await t.run(
    `insert into mail (organization_id, kind, address, due_at)
     select id, 'audit_log.anchor', 'security@example.org', now() - interval '1 hour' from organization`,
  );
  const orgId = await t.make.organization();
  for (const kind of ['key.create', 'key.revoke', 'key.rotate'])
    await t.run(`insert into mail (organization_id, kind, address) values ($1, $2, 'security@example.org')`, [
      orgId,
      kind,
    ]);
  const kinds: string[] = [];
  for (let time = 0; time < 8; time += 1)
    kinds.push(...(await t.run<{ kind: string }>(admitMailSql)).map((m) => m.kind));
  const anchor = 'audit_log.anchor';
  const inTurn = ['key.create', anchor, 'key.revoke', anchor, 'key.rotate', anchor, anchor, anchor];
  expect(kinds).toEqual(kinds[0] === anchor ? [anchor, ...inTurn.slice(0, 5), anchor, anchor] : inTurn);
});
