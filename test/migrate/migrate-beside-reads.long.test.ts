/**
 * A migration while partners read: each read inserts an audit entry, and a statement that waits
 * for a lock blocks all later ones.
 */
import { Migration } from '@mikro-orm/migrations';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { currentMigration } from '#domain/db/schema-version.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setup, type TestInstallation } from '#test/setup.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { migrations } from '../../apps/migrate/migrations/index.ts';

const timeout = 90_000;
/** Time after which a read's statement is cancelled. Source: apps/domain/open-database.ts. */
const readTimeoutMs = 5_000;

/** Needs the strongest lock for a moment. */
class ColumnOfAuditEntry extends Migration {
  override up(): void {
    this.addSql('alter table audit_entry add column added_meanwhile integer');
  }
}

/**
 * Reads continuously with several keys, because one key may read 120 times a minute. `stop` returns
 * the status of each read and the longest duration.
 */
async function startReading({ api, make }: TestInstallation) {
  const creator = await make.member({ permissions: ['org.billing.manage'] });
  const made = await Promise.all(
    Array.from({ length: 5 }, () => make.apiKey({ creator, scopes: ['org.billing.manage'] })),
  );
  const keys = made.map(({ key }) => key);
  const statuses = new Map<number, number>();
  let longestMs = 0;
  let number = 0;
  const underWay = new Set<Promise<void>>();
  async function read(key = ''): Promise<void> {
    const startedAt = performance.now();
    const { status } = await api.get(`/v1/orgs/${creator.orgId}/seats`, { key });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    longestMs = Math.max(longestMs, performance.now() - startedAt);
  }
  const timer = setInterval(() => {
    const reading = read(keys[number++ % keys.length]).finally(() => underWay.delete(reading));
    underWay.add(reading);
  }, 150);
  return {
    creator,
    reads: () => [...statuses.values()].reduce((sum, count) => sum + count, 0),
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
      return { statuses: Object.fromEntries(statuses), longestMs };
    },
  };
}

async function connectOwner(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const migrateWith = (url: string, more: { name: string; class: typeof ColumnOfAuditEntry }[], lines: string[] = []) =>
  migrate({
    owner: parsePostgresUrl(url),
    logins: [],
    migrations: [...migrations, ...more],
    report: (line) => void lines.push(line),
  });

it('a migration yields to reads while a long transaction holds the log, and then completes', { timeout }, async () => {
  const t = await setup();
  const reading = await startReading(t);
  const long = await connectOwner(t.database.ownerUrl);
  await long.query('begin');
  await long.query(`insert into audit_entry (organization_id, action) values ($1, 'test')`, [reading.creator.orgId]);

  const lines: string[] = [];
  let isDone = false;
  const migrating = migrateWith(t.database.ownerUrl, [{ name: '9999-column', class: ColumnOfAuditEntry }], lines).then(
    (result) => {
      isDone = true;
      return result;
    },
  );
  const isTriedAgain = () => lines.filter((line) => line.includes('nothing was changed, tried again in 5 s')).length;
  await vi.waitFor(() => expect(isTriedAgain()).toBe(2), { timeout: 60_000, interval: 100 });
  expect(isDone).toBe(false);
  const before = reading.reads();
  await vi.waitFor(() => expect(reading.reads()).toBeGreaterThan(before + 10), { timeout: 20_000, interval: 100 });
  await long.query('commit');

  expect(await migrating).toEqual({ applied: ['9999-column'], current: currentMigration });
  const { statuses, longestMs } = await reading.stop();
  expect(Object.keys(statuses)).toEqual(['200']);
  expect(longestMs).toBeLessThan(readTimeoutMs);
});
