import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { Maintenance } from '../../apps/worker/maintenance.ts';

/** Runs the steps of maintenance in a process that a test stops and kills. */
const maintenance = new Maintenance({
  server: parsePostgresUrl(process.argv[2] ?? ''),
  auditLogRetentionDays: 730,
  deliveryRetentionDays: 90,
  suspendAfterSeconds: 3_600,
  everyMs: 50,
  onError: (cause) => console.error(cause),
});
await maintenance.start();
setInterval(() => {}, 1_000);
