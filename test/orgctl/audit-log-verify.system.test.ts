/** `orgctl audit-log verify`, as operators run it, beside the worker's maintenance and its log. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { AuditAnchor } from '#domain/audit-log/chain.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { writeEntries } from '#test/write-entries.ts';
import { Maintenance } from '../../apps/worker/maintenance.ts';

it('finds no error in a complete log, and names a changed entry and a chain that left its anchor', async () => {
  const { database, owner, make, orgctl } = await setupOrgctl();
  const orgId = await make.organization();
  const [first] = await writeEntries(owner, [{ orgId }, { orgId }, { orgId }]);
  const anchors: AuditAnchor[] = [];
  const maintenance = new Maintenance({
    server: parsePostgresUrl(database.urls.worker),
    auditLogRetentionDays: 730,
    deliveryRetentionDays: 90,
    suspendAfterSeconds: 72 * 3_600,
    everyMs: 50,
    onAnchor: (anchor) => anchors.push(anchor),
    onError: () => {},
  });
  await maintenance.start();
  onTestFinished(() => maintenance.stop());
  const verify = (...args: string[]) => orgctl('audit-log', 'verify', '--region', 'us', '--json', ...args);
  await vi.waitFor(async () => expect((await verify()).json()).toMatchObject({ entries: 3, faults: [] }), {
    timeout: 30_000,
  });
  const log = path.join(temporaryFolder(), 'worker.log');
  const { rows } = await owner.pool.query<AuditAnchor>(
    `select organization_id as "organizationId", to_char(month, 'YYYY-MM') as month, length::float8 as length,
       encode(hash, 'hex') as hash from audit_chain`,
  );
  const logLines = [{ msg: 'another line' }, ...rows.map((auditAnchor) => ({ auditAnchor }))];
  await writeFile(log, logLines.map((line) => JSON.stringify(line)).join('\n'));
  expect(await verify('--anchors', log)).toMatchObject({ code: 0 });
  expect((await verify('--anchors', log)).json()).toMatchObject({ anchors: 1, faults: [] });

  await owner.pool.query(`update audit_entry set action = 'api.getOrgSeats' where id = $1`, [first]);
  const changed = await verify('--org', orgId);
  expect(changed.code).toBe(1);
  expect(changed.json()).toMatchObject({ faults: [{ position: 1, entryId: first, fault: 'changed' }] });
  await owner.pool.query(`update audit_link set hash = sha256('x') where position = 3`);
  const replaced = (await verify('--anchors', log)).json<{ faults: { fault: string }[] }>();
  expect(replaced.faults.map(({ fault }) => fault).sort()).toEqual(['anchor', 'changed', 'changed', 'end']);
  const text = (await orgctl('audit-log', 'verify', '--region', 'us', '--anchors', log)).stdout;
  expect(text).toContain(`entry ${first} at position 1 is the first that differs.`);
  await owner.pool.query('truncate audit_link, audit_chain; update audit_progress set linked_to = 0');
  await vi.waitFor(async () => expect((await verify()).json()).toMatchObject({ entries: 3, faults: [] }), {
    timeout: 30_000,
  });
  const recomputed = await orgctl('audit-log', 'verify', '--region', 'us', '--anchors', log);
  expect(recomputed.code).toBe(1);
  expect(recomputed.stdout).toContain(`at one of the positions 1 to 3; the first of these is entry ${first}.`);
  expect((await verify('--anchors', 'no-such-file')).stderr).toContain('cannot be read');
  expect((await verify('--month', '2026-13')).code).toBe(2);
});
