/** A read whose audit entry cannot be committed gets no response, and a metric counts it. */
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setup, setupDatabase } from '#test/setup.ts';
import { AuditLogWriter } from '../../../apps/api/audit-log-writer.ts';

it('a read whose audit entry cannot be written gets 500 and is counted as rejected by the log', async () => {
  const { api, owner, make } = await setup();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  const read = () => api.get(`/v1/orgs/${creator.orgId}`, { key });
  const rejected = async () =>
    /^org_api_audit_entries_rejected_total (\d+)$/m.exec(await (await fetch(`${api.metricsUrl}/metrics`)).text())?.[1];
  expect((await read()).status).toBe(200);
  expect(await rejected()).toBe('0');

  await owner.pool.query('revoke execute on function api.record_key_uses from org_api_read');
  const response = await read();
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain(creator.orgId);
  expect(await rejected()).toBe('1');

  await owner.pool.query('grant execute on function api.record_key_uses to org_api_read');
  expect((await read()).status).toBe(200);
  expect(await rejected()).toBe('1');
});

/** A writer on a new database, its inserts, and the entries that failed. */
async function setupWriter() {
  const { database, owner, make } = await setupDatabase();
  const { id: keyId } = await make.apiKey();
  const api = await openDatabase({
    server: parsePostgresUrl(database.urls.api),
    applicationName: 'audit-log-writer',
    poolMax: 2,
  });
  onTestFinished(() => api.close());
  const inserts: number[] = [];
  const rejected: number[] = [];
  const writer = new AuditLogWriter({
    pool: api.pool,
    onInsert: (entries) => inserts.push(entries),
    onRejected: (entries) => rejected.push(entries),
  });
  const record = (address: string) =>
    writer.record({ id: crypto.randomUUID(), keyId, action: 'api.getOrg', status: 200, code: null, address });
  /** Records 50 entries at once, of which these have no valid address; returns which failed. */
  async function recordWithout(invalid: readonly number[]) {
    const entries = Array.from({ length: 50 }, (_, n) => record(invalid.includes(n) ? 'invalid' : '192.0.2.1'));
    const results = await Promise.allSettled(entries);
    return results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []));
  }
  const countEntries = async () =>
    (await owner.pool.query(`select from audit_entry where action = 'api.getOrg'`)).rowCount;
  return { owner, recordWithout, countEntries, inserts, rejected };
}

it('an entry that the database rejects fails alone, and the others of its insert are committed once', async () => {
  const { recordWithout, countEntries, inserts, rejected } = await setupWriter();
  expect(await recordWithout([17])).toEqual([17]);
  expect(await countEntries()).toBe(49);
  expect(rejected).toEqual([1]);
  expect(inserts[0]).toBe(50);
  expect(inserts.length).toBeLessThan(15);
  expect(await recordWithout([0, 25, 49])).toEqual([0, 25, 49]);
  expect(await countEntries()).toBe(49 + 47);
});

it('an insert of which many entries are rejected is repeated in at most 64 parts, so that the next one begins', async () => {
  const { recordWithout, countEntries, inserts } = await setupWriter();
  const all = Array.from({ length: 50 }, (_, n) => n);
  expect(await recordWithout(all)).toEqual(all);
  expect(inserts.length).toBeLessThanOrEqual(1 + 64);
  expect(await recordWithout([])).toEqual([]);
  expect(await countEntries()).toBe(50);
});

it('an insert that fails for no entry of it is not repeated', async () => {
  const { owner, recordWithout, countEntries, inserts, rejected } = await setupWriter();
  await owner.pool.query('revoke execute on function api.record_key_uses from org_api_read');
  expect(await recordWithout([])).toHaveLength(50);
  expect(await countEntries()).toBe(0);
  expect([inserts, rejected]).toEqual([[50], [50]]);
});
