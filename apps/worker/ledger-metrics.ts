import { CompiledQuery } from 'kysely';
import type { Registry } from 'prom-client';
import type { Queryable } from '#domain/db/database.ts';
import { type Ledger, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';
import { addStepsSql, type ClaimedStep, claimStepSql, finishStepSql, readStepSql } from './step-statements.ts';

const help: Record<keyof Ledger, string> = {
  required: 'Deliveries that events require, as counted when they were created.',
  delivered: 'Deliveries that a receiver accepted.',
  waiting: 'Deliveries that wait for an attempt.',
  held: 'Deliveries of paused and suspended webhooks.',
  exhausted: 'Deliveries whose schedule ended without a 2xx.',
  cancelled: 'Deliveries that a person cancelled, or whose webhook was deleted.',
  difference: 'Deliveries that events require, less settled and open deliveries. Alert when it is not 0.',
  missing: 'Required deliveries that are absent, or settled without proof. Alert when it is not 0.',
  surplus: 'Deliveries and settlements without a cause. Alert when it is not 0.',
  unexplained: 'Changes without their event, and sequence numbers without their delivery. Alert when it is not 0.',
  overdue: 'Deliveries of active webhooks that have been due for over a minute, at most 1,000 of each webhook.',
  stuck:
    'Overdue deliveries that wait neither for their own receiver nor for others of their organization. Alert when ' +
    'it stays above 0.',
};

/** Webhooks that need attention, by state. */
interface FailingWebhooks {
  /** Active, and each attempt since the last 2xx failed. */
  failing: number;
  /** Suspended: nothing was accepted for `SUSPEND_AFTER`, or the receiver answered 410. */
  suspended: number;
  /** Paused by a person. */
  paused: number;
}

/** Counts them in one row, `FailingWebhooks`, each by a partial index. */
export const countFailingWebhooksSql = /* sql */ `
  select (select count(*) from receiver r
      join webhook w on w.organization_id = r.organization_id and w.id = r.webhook_id and w.state = 'active'
    where r.failing_since is not null)::integer as failing,
    (select count(*) from webhook w where w.state = 'suspended')::integer as suspended,
    (select count(*) from webhook w where w.state = 'paused')::integer as paused`;

interface Reading {
  ledger: Ledger;
  webhooks: FailingWebhooks;
}

const step = 'read_ledger';
/** Rows of a statement that rolls up, and how long such statements may begin: a claim of the step lasts a minute. */
const rollUp = { atMost: 20_000, forMs: 30_000 };
/** A reading costs one percent of a core at most, for the region. */
const pauseFactor = 100;

/**
 * Shows the ledger and the failing webhooks as gauges, every 15 s. One worker reads them and stores
 * the reading, and all show it, with its time. It first rolls up all settled deliveries, which keeps
 * the reading short. The next one follows after `everyMs`, or after 100 times the time that reading
 * took; rolling up is not counted, because its work is that of the deliveries (0.03 ms each).
 */
export function ledgerMetrics(
  db: Queryable,
  registry: Registry,
  { everyMs = 15_000, onError }: { everyMs?: number; onError: (cause: unknown) => void },
) {
  const { gauge } = metricsIn(registry);
  const figures = Object.entries(help) as [keyof Ledger, string][];
  const gauges = figures.map(([figure, text]) => ({ figure, gauge: gauge(`org_api_ledger_${figure}`, text) }));
  const readAt = gauge('org_api_ledger_read_timestamp_seconds', 'When a worker last read the ledger.');
  const webhooks = gauge(
    'org_api_webhooks',
    'Webhooks that are not well: failing (active, only failures came back lately), suspended (nothing was ' +
      'accepted for SUSPEND_AFTER, or 410 was answered) and paused (by a person).',
    'state',
  );

  async function refresh(signal: AbortSignal): Promise<void> {
    try {
      await readWhenDue(signal);
    } finally {
      await show();
    }
  }

  async function readWhenDue(signal: AbortSignal): Promise<void> {
    await db.query(CompiledQuery.raw(addStepsSql, [[step]]));
    const [claimed] = await db.query<ClaimedStep>(CompiledQuery.raw(claimStepSql, [[step]]));
    if (claimed === undefined) return;
    let startedAt = Number.POSITIVE_INFINITY;
    let reading: Reading | null = null;
    try {
      await rollUpAll(AbortSignal.any([signal, AbortSignal.timeout(rollUp.forMs)]));
      if (signal.aborted) return; // what is left would make the reading long
      startedAt = performance.now();
      const ledger = await readLedger(db);
      const [webhooks] = await db.query<FailingWebhooks>(CompiledQuery.raw(countFailingWebhooksSql));
      reading = { ledger, webhooks: webhooks as FailingWebhooks };
    } finally {
      const pauseMs = Math.max(everyMs, pauseFactor * (performance.now() - startedAt));
      const values = [claimed.name, claimed.until, pauseMs / 1_000, reading && JSON.stringify(reading)];
      await db.query(CompiledQuery.raw(finishStepSql, values));
    }
  }

  /** Rolls up what is settled, a batch at a time. */
  async function rollUpAll(signal: AbortSignal): Promise<void> {
    for (let rows = rollUp.atMost; rows >= rollUp.atMost && !signal.aborted; ) {
      const { deliveries, events } = await rollUpLedger(db, rollUp);
      rows = Math.max(deliveries, events);
    }
  }

  async function show(): Promise<void> {
    const [row] = await db.query<{ reading: Reading; readAtMs: number }>(CompiledQuery.raw(readStepSql, [step]));
    if (row === undefined) return;
    for (const { figure, gauge } of gauges) gauge.set(row.reading.ledger[figure]);
    for (const [state, count] of Object.entries(row.reading.webhooks)) webhooks.set({ state }, count);
    readAt.set(row.readAtMs / 1_000);
  }

  return new IntervalLoop({ run: refresh, everyMs, onError });
}
