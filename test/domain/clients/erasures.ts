/** What the tests of erasures share. */
import pg from 'pg';
import { expect, onTestFinished, vi } from 'vitest';
import { verifyAuditLog } from '#domain/audit-log/verify.ts';
import type { TestInstallation } from '#test/setup.ts';

/** Returns a function that calls a function of the database with one login, and returns its result. */
export async function connectAs(url: string): Promise<(text: string, values?: unknown[]) => Promise<unknown>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return async (text, values = []) => Object.values((await client.query(text, values)).rows[0] ?? {})[0];
}

/** Links every entry of the audit log, and verifies the chains. */
export async function verify({ owner }: Pick<TestInstallation, 'owner'>) {
  const linked = async () => {
    const { rows } = await owner.pool.query('select is_all_done from append_audit_chain(1000)');
    expect(rows).toEqual([{ is_all_done: true }]);
  };
  await vi.waitFor(linked, { timeout: 60_000, interval: 20 });
  return verifyAuditLog(owner, { organizationId: null, month: null });
}
