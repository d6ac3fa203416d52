/**
 * Downloads of the audit log: a limited number at a time, and no data held for a browser that
 * does not read.
 */
import { expect, it, vi } from 'vitest';
import { constants } from '#test/constants.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { untilFigures } from '../api/bounds/figures.ts';
import { openReader } from '../api/bounds/readers.ts';
import { setupConsole } from './setup.ts';

vi.setConfig({ testTimeout: 120_000 });

it('a stalled download holds no database connection and is cut, and a second download of one person is rejected', async () => {
  const {
    owner,
    enrol,
    console: app,
    http,
    origin,
  } = await setupConsole({ [constants]: { minBytesPerSecond: 50_000, slowAfterMs: 3_000 } });
  const person = await enrol();
  await owner.pool.query(
    `insert into audit_entry (organization_id, at, person_id, action, detail)
     select $1, now() - n * interval '1 second', $2, 'webhook.pause', jsonb_build_object('text', repeat('x', 200))
     from generate_series(1, 40000) n`,
    [person.orgId, person.personId],
  );
  const path = `/o/${person.orgId}/audit-log/csv`;
  const headers = { Cookie: `${cookieName('session', origin)}=${person.sessionToken}` };
  await openReader(app.url, { path, headers, bytesPerSecond: 0 });
  const begun = async () => {
    const text = `select count(*)::int as count from audit_entry where action = 'audit_log.download'`;
    return (await owner.pool.query<{ count: number }>(text)).rows[0]?.count;
  };
  await vi.waitUntil(async () => (await begun()) === 1, { timeout: 30_000, interval: 50 });

  const second = await http(person).get(path);
  expect(second.status).toBe(429);
  expect(second.headers.get('retry-after')).toBe('5');
  expect(await begun()).toBe(1);
  const busy = `select count(*)::int as count from pg_stat_activity
    where datname = current_database() and application_name = 'org-console' and state <> 'idle'`;
  await vi.waitUntil(async () => (await owner.pool.query(busy)).rows[0].count === 0, { timeout: 20_000, interval: 50 });

  const { cut } = await untilFigures(app.metricsUrl, (figures) => figures.cut.slow === 1, 60_000);
  expect(cut).toEqual({ slow: 1 });
  const whole = await http(person).get(path);
  expect(whole.status).toBe(200);
  expect(whole.text.split('\r\n').length).toBeGreaterThan(40_000);
});
