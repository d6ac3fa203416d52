import { Pool as PgPool, type Pool } from 'pg';
import { type Database, openDatabase } from '#domain/db/connect.ts';
import { claimDeliveriesSql, recordStartedSql } from '#domain/db/statements/claim-deliveries.ts';
import {
  cancelDeliveriesSql,
  restartDeliveriesSql,
  suspendFailingWebhooksSql,
} from '#domain/db/statements/park-webhooks.ts';
import { cancelDelivery } from '#domain/webhooks/cancel-delivery.ts';
import { readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { deleteWebhook, pauseWebhook, resumeWebhook } from '#domain/webhooks/park.ts';
import { redeliverOne } from '#domain/webhooks/redeliver.ts';
import { WebhookRefused } from '#domain/webhooks/refused.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { claimValues } from '#test/claim.ts';
import { createTestDatabase } from '#test/database.ts';
import { createFactories } from '#test/make.ts';
import { createDeliveryActivities, type PostOutcome } from '#workflows/deliver-event/activities.ts';
import type { AttemptInput, DeliveryKey, LostAttemptInput } from '#workflows/deliver-event/types.ts';
import type { ClaimedDelivery } from '../../apps/worker/relay/claimed-delivery.ts';
import { reconcile } from '../../apps/worker/relay/reconciler.ts';

/** A round of a delivery, for which a workflow is started. */
export type Round = DeliveryKey & { round: number };

/** The state of a delivery, with the values that prove the bounds. */
export interface DeliveryState extends Round {
  state: 'waiting' | 'delivered' | 'exhausted' | 'cancelled';
  started: boolean;
  attempts: number;
  /** ISO text; null while it is open. */
  settledAt: string | null;
  /** Attempts without an outcome. */
  open: number;
}

/**
 * Every action of the protocol against a new database: the statements that the apps send, over the
 * apps' logins. The caller plays Temporal and the receivers.
 */
export async function openProtocol(
  post: (request: { headers: Record<string, string>; webhookId: string }) => Promise<PostOutcome>,
) {
  const database = await createTestDatabase();
  const owner: Database = await openDatabase({
    server: parsePostgresUrl(database.ownerUrl),
    applicationName: 'model',
    poolMax: 2,
  });
  const worker: Pool = new PgPool({ connectionString: database.urls.worker, max: 4 });
  worker.on('error', () => {});
  const make = createFactories(owner);
  const professional = await make.member();
  const organizationId = professional.orgId;
  const { em } = owner.orm;
  let passedSeconds = 0;
  /** Time that had passed when the attempt with this start was admitted. */
  const admittedAt = new Map<string, number>();

  /** The worker's pool. It identifies an attempt by its start as `pass` has moved it. */
  const attemptPool = Object.create(worker, {
    query: {
      value: async (query: { name: string; text: string; values: unknown[] }) => {
        if (query.name === 'recordOutcome') query.values = await Promise.all(query.values.map(shifted));
        const result = await worker.query(query);
        const startedAt: unknown = result.rows[0]?.startedAt;
        if (typeof startedAt === 'string') admittedAt.set(startedAt, passedSeconds);
        return result;
      },
    },
  }) as Pool;

  async function shifted(value: unknown): Promise<unknown> {
    const at = typeof value === 'string' ? admittedAt.get(value) : undefined;
    if (at === undefined) return value;
    const { rows } = await worker.query<{ at: string }>(
      'select ($1::timestamptz - make_interval(secs => $2))::text as at',
      [value, passedSeconds - at],
    );
    return rows[0]?.at;
  }

  const activities = createDeliveryActivities({
    pool: attemptPool,
    post,
    sign: ({ eventId }) => ({ 'webhook-id': eventId }),
  });
  const of = (webhookId: string) => ({ organizationId, webhookId, by: 'operator' as const });
  const columnsOf = (rounds: Round[]) =>
    (['organizationId', 'webhookId', 'eventId', 'round'] as const).map((name) => rounds.map((round) => round[name]));

  return {
    organizationId,
    insertWebhook: async () => (await make.webhook({ orgId: organizationId })).id,
    makeEvent: async () => void (await make.grant({ professional })),
    claim: async (): Promise<ClaimedDelivery[]> =>
      (await worker.query(claimDeliveriesSql, await claimValues(worker, { prompt: 20, slow: 20, leaseSeconds: 5 })))
        .rows,
    recordStarted: async (rounds: Round[]) => void (await worker.query(recordStartedSql, columnsOf(rounds))),
    attempt: (input: AttemptInput) => activities.attemptDelivery(input),
    recordLost: (input: LostAttemptInput) => activities.recordLostAttempt(input),
    reconcile: (getStatus: (round: Round) => 'ended' | 'busy' | 'waiting', retryNow: (round: Round) => void) =>
      reconcile({
        pool: worker,
        getStatus: async (round) => getStatus(round),
        retryNow: async (round) => retryNow(round),
        terminate: async () => {},
        overdueMs: 60_000,
        signal: new AbortController().signal,
      }),
    restart: async () => void (await worker.query(restartDeliveriesSql, [100])),
    cancelDeleted: async () => void (await worker.query(cancelDeliveriesSql, [100])),
    suspendFailing: async () => void (await worker.query(suspendFailingWebhooksSql, [3_600, 7_200])),
    rollUp: () => rollUpLedger(worker, { settledForSeconds: 0 }),
    pause: (webhookId: string) => unlessRefused(pauseWebhook(em, of(webhookId))),
    resume: (webhookId: string) => unlessRefused(resumeWebhook(em, of(webhookId))),
    delete: (webhookId: string) => unlessRefused(deleteWebhook(em, of(webhookId))),
    redeliver: ({ webhookId, eventId }: DeliveryKey) =>
      unlessRefused(redeliverOne(em, { ...of(webhookId), eventId }, { canRetryNow: true })),
    cancel: ({ webhookId, eventId }: DeliveryKey) => unlessRefused(cancelDelivery(em, { ...of(webhookId), eventId })),

    /** Lets time pass: makes everything older that the protocol compares with the clock. */
    async pass(seconds: number): Promise<void> {
      passedSeconds += seconds;
      await owner.pool.query(`
        update delivery set next_attempt_at = next_attempt_at - interval '${seconds} s', leased_until = leased_until
          - interval '${seconds} s'
          where state = 'waiting';
        update delivery_attempt set started_at = started_at - interval '${seconds} s' where finished_at is null;
        update concurrency_slot set started_at = started_at - interval '${seconds} s';
        update webhook set failing_since = failing_since - interval '${seconds} s',
          last_failed_at = last_failed_at - interval '${seconds} s', next_failure_by = next_failure_by - interval
            '${seconds} s'`);
    },

    async listDeliveries(): Promise<DeliveryState[]> {
      const { rows } = await owner.pool.query<DeliveryState>(
        `select d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId",
          d.round, d.state, d.started,
           d.attempts, d.settled_at::text as "settledAt",
           (select count(*)::int from delivery_attempt a where (a.organization_id, a.webhook_id,
             a.event_id) = (d.organization_id, d.webhook_id, d.event_id)
             and a.finished_at is null) as open
         from delivery d order by d.webhook_id, d.event_id`,
      );
      return rows;
    },

    async readFigures(): Promise<{
      difference: number;
      slots: number;
      mostSlots: number;
      webhooks: Map<string, string>;
    }> {
      const { rows } = await owner.pool.query<{ slots: number; mostSlots: number }>(
        `select coalesce(sum(s.count), 0)::int as slots, coalesce(max(s.count), 0)::int as "mostSlots"
         from (select count(*) from concurrency_slot group by webhook_id) s`,
      );
      const states = await owner.pool.query<{ id: string; state: string }>('select id, state from webhook');
      const { difference } = await readLedger(worker);
      return {
        difference,
        ...(rows[0] ?? { slots: 0, mostSlots: 0 }),
        webhooks: new Map(states.rows.map(({ id, state }) => [id, state])),
      };
    },

    /** Counts of causes of attempts and states of deliveries and webhooks. */
    async listKinds(): Promise<string[]> {
      const { rows } = await owner.pool.query<{ kind: string }>(
        `select 'attempt ' || coalesce(cause, 'open') as kind from delivery_attempt
         union select 'delivery ' || state from delivery
         union select 'another round' from delivery where round > 1
         union select 'webhook ' || state from webhook`,
      );
      return rows.map(({ kind }) => kind);
    },

    async close(): Promise<void> {
      await worker.end();
      await owner.close();
      await database.drop();
    },
  };
}

export type Protocol = Awaited<ReturnType<typeof openProtocol>>;

/** Null when the state of the delivery or webhook does not allow it. */
async function unlessRefused<Result>(asked: Promise<Result>): Promise<Result | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof WebhookRefused) return null;
    throw error;
  }
}
