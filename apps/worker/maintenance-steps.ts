import type pg from 'pg';
import { suspendWebhooksSql } from '#delivery/sql/suspend.ts';
import { sumCallsSql } from '#domain/audit-log/calls.ts';
import {
  type AppendedRow,
  type AuditAnchor,
  appendAuditChainSql,
  listAuditAnchorsSql,
  recordAuditAnchorsSql,
} from '#domain/audit-log/chain.ts';
import { dropOldAuditEntriesSql, keepPartitionsSql } from '#domain/audit-log/retention.ts';
import { beginDueGrantsSql, endDueGrantsSql } from '#domain/clients/due-grants.ts';
import {
  type ErasureCertificate,
  listErasuresToLogSql,
  recordErasuresLoggedSql,
  repeatErasuresSql,
} from '#domain/clients/erase-family.ts';
import { hourMs } from '#domain/contract/durations.ts';
import { purgeBatchSize } from '#domain/webhooks/limits.ts';
import { purgeDeliveriesSql, purgeExpiredSecretsSql } from '#domain/webhooks/retention.ts';

/**
 * Deletes expired data of sign-ins: sessions past their end or idle (with their challenges), links,
 * challenges, known browsers, and failures that no longer count. None of them can be used again;
 * deleting them limits personal data to what is needed. Hourly is enough.
 */
export const purgeExpiredSignInsSql = /* sql */ `select purge_expired_sign_ins()`;

/** Rows that one statement links, or sums: 0.3 s of work. The next run follows a second later. */
export const entriesPerAppend = 20_000;
const anchorsPerRun = 500;
const noticesPerRun = 200;
/**
 * Ten seconds are short beside the days that a webhook has failed by then, and for the numbers of
 * the console.
 */
const seldomRuns = 10;

/** The steps by their names in logs and metrics. At a start, what people wait for comes first. */
export const maintenanceSteps = [
  'end_grants',
  'repeat_erasures',
  'suspend_webhooks',
  'record_notices',
  'purge_secrets',
  'chain_audit_log',
  'sum_calls',
  'anchor_audit_log',
  'keep_partitions',
  'drop_audit_entries',
  'purge_sign_ins',
  'purge_deliveries',
  'purge_mails',
] as const;
export type MaintenanceStep = (typeof maintenanceSteps)[number];

export interface Step {
  name: MaintenanceStep;
  /** How long the step pauses when all is done; at least the interval of the loop. */
  everyMs: number;
  /** Runs bounded statements that are safe to repeat; what is left is done in the next run. */
  run: (client: pg.Client) => Promise<{ isAllDone: boolean }>;
}

export interface StepOptions {
  auditLogRetentionDays: number;
  deliveryRetentionDays: number;
  /** How long a webhook fails before it is suspended. */
  suspendAfterSeconds: number;
  everyMs: number;
  onEnded?: (grants: number) => void;
  onSuspended?: (webhooks: number) => void;
  /** Called with the certificate of an erasure, when it is new and when it is completed. */
  onErased?: (certificate: ErasureCertificate) => void;
  /** Called with the end of a hash chain that is not anchored today. */
  onAnchor?: (anchor: AuditAnchor) => void;
  /** Sends logged anchors out of the region. False: not accepted; they are anchored again in an hour. */
  sendAnchors?: (anchors: readonly AuditAnchor[]) => Promise<boolean>;
  /** Deliveries and events that were older than their retention. */
  onPurged?: (purged: { deliveries: number; events: number }) => void;
}

/** Returns a step of one statement that does all its work in one run. */
const statement = <Row extends pg.QueryResultRow>(
  everyMs: number,
  text: string,
  values: unknown[] = [],
  onRows: (rows: Row[]) => void = () => {},
): Omit<Step, 'name'> => ({
  everyMs,
  async run(client) {
    onRows((await client.query<Row>(text, values)).rows);
    return { isAllDone: true };
  },
});

/**
 * Returns the steps of maintenance. Each second: due grants begin and end, expired secrets are purged, and
 * new entries of the audit log are linked into their hash chains. Every ten seconds: failing
 * webhooks are suspended, and new calls are added to their sums. Each minute: responses that came
 * after an erasure are erased, and webhooks that fail or were suspended and keys that expire become notices. Each
 * hour: chains are anchored (once a day each), partitions are created ahead, and what is older than
 * its retention is purged.
 */
export function createMaintenanceSteps(options: StepOptions): Step[] {
  const { auditLogRetentionDays, deliveryRetentionDays, suspendAfterSeconds, everyMs } = options;
  const { onEnded = () => {}, onSuspended = () => {}, onErased = () => {} } = options;
  const { onAnchor = () => {}, sendAnchors = async () => true, onPurged = () => {} } = options;

  const steps: Record<MaintenanceStep, Omit<Step, 'name'>> = {
    end_grants: {
      everyMs: 0,
      async run(client) {
        await client.query(beginDueGrantsSql);
        const { rows } = await client.query(endDueGrantsSql);
        onEnded(rows.length);
        return { isAllDone: true };
      },
    },
    repeat_erasures: {
      everyMs: 60_000,
      async run(client) {
        await client.query(repeatErasuresSql);
        const { rows } = await client.query<{ certificate: ErasureCertificate }>(listErasuresToLogSql);
        const certificates = rows.map(({ certificate }) => certificate);
        // Logged before it is recorded: a crash between them repeats a line and loses none.
        for (const certificate of certificates) onErased(certificate);
        await client.query(recordErasuresLoggedSql, [JSON.stringify(certificates)]);
        return { isAllDone: true };
      },
    },
    suspend_webhooks: statement(seldomRuns * everyMs, suspendWebhooksSql, [suspendAfterSeconds], (rows) =>
      onSuspended(rows.length),
    ),
    record_notices: {
      everyMs: 60_000,
      async run(client) {
        const { rows } = await client.query<{ recorded: number }>('select record_notices($1) as recorded', [
          noticesPerRun,
        ]);
        return { isAllDone: (rows[0]?.recorded ?? 0) < noticesPerRun };
      },
    },
    purge_secrets: statement(0, purgeExpiredSecretsSql),
    sum_calls: {
      everyMs: seldomRuns * everyMs,
      async run(client) {
        const { rows } = await client.query<{ isAllDone: boolean }>(sumCallsSql, [entriesPerAppend]);
        return { isAllDone: rows[0]?.isAllDone ?? true };
      },
    },
    chain_audit_log: {
      everyMs: 0,
      async run(client) {
        const { rows } = await client.query<AppendedRow>(appendAuditChainSql, [entriesPerAppend]);
        return { isAllDone: rows[0]?.isAllDone ?? true };
      },
    },
    anchor_audit_log: {
      everyMs: hourMs,
      async run(client) {
        const { rows } = await client.query<AuditAnchor>(listAuditAnchorsSql, [anchorsPerRun]);
        // Logged and sent before it is recorded: a crash between them repeats a line and loses none.
        for (const anchor of rows) onAnchor(anchor);
        if (!(await sendAnchors(rows))) return { isAllDone: true };
        await client.query(recordAuditAnchorsSql, [
          rows.map(({ organizationId }) => organizationId),
          rows.map(({ month }) => month),
          rows.map(({ length }) => length),
        ]);
        return { isAllDone: rows.length < anchorsPerRun };
      },
    },
    keep_partitions: statement(hourMs, keepPartitionsSql),
    drop_audit_entries: statement(hourMs, dropOldAuditEntriesSql, [auditLogRetentionDays]),
    purge_sign_ins: statement(hourMs, purgeExpiredSignInsSql),
    purge_mails: statement(hourMs, `select purge_mails()`),
    purge_deliveries: {
      everyMs: hourMs,
      async run(client) {
        const values = [deliveryRetentionDays, purgeBatchSize];
        const { rows } = await client.query<{ deliveries: number; events: number }>(purgeDeliveriesSql, values);
        const { deliveries = 0, events = 0 } = rows[0] ?? {};
        onPurged({ deliveries, events });
        return { isAllDone: deliveries < purgeBatchSize && events < purgeBatchSize };
      },
    },
  };
  return maintenanceSteps.map((name) => ({ name, ...steps[name] }));
}
