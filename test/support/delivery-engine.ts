import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { expect } from 'vitest';
import { type AdmissionRow, type AdmittedRow, admitAttemptSql } from '#delivery/sql/admit.ts';
import { type ClaimedDelivery, claimDeliveriesSql, listQueuedSql, returnClaimsSql } from '#delivery/sql/claim.ts';
import { type OutcomeRow, outcomeValues, recordOutcomeSql } from '#delivery/sql/outcome.ts';
import { type RepairedRow, repairDeliveriesSql } from '#delivery/sql/repair.ts';
import {
  type ChangedDeliveriesRow,
  cancelDeletedSql,
  cancelOneSql,
  redeliverOneSql,
  requeueHeldSql,
} from '#delivery/sql/requests.ts';
import { suspendWebhooksSql } from '#delivery/sql/suspend.ts';
import { type UnblockedRow, unblockSql } from '#delivery/sql/unblock.ts';
import type { Database } from '#domain/db/database.ts';
import type { AttemptOutcome } from '#domain/webhooks/causes.ts';
import { deliveriesPerStatement } from '#domain/webhooks/limits.ts';
import type { WebhookState } from '#domain/webhooks/webhook.entity.ts';
import type { TestDatabase } from './database.ts';
import { type OnFinished, setupDatabase } from './setup.ts';

const nil = '00000000-0000-0000-0000-000000000000';

/** The waits and the attempts of the schedule, and how many more follow when attempts are lost. */
const scheduleWaitsMs = [30_000, 60_000];
export const scheduleAttempts = scheduleWaitsMs.length + 1;
export const lostRepeats = 3;

/** The statements that are sent. A test of mutants replaces one. */
export const originals = {
  claimDeliveriesSql,
  listQueuedSql,
  returnClaimsSql,
  admitAttemptSql,
  recordOutcomeSql,
  repairDeliveriesSql,
  unblockSql,
  suspendWebhooksSql,
  redeliverOneSql,
  cancelOneSql,
  requeueHeldSql,
  cancelDeletedSql,
};
export type Statements = typeof originals;

/** A webhook, or one of its deliveries. */
export interface Hook {
  organizationId: string;
  webhookId: string;
}
export interface Run extends Hook {
  eventId: string;
  run: number;
}
export type Attempt = Run & AdmittedRow & { id: string };

/** A row of `delivery` with what belongs to it. */
export interface DeliveryState extends Run {
  state: string;
  failures: number;
  attempts: number;
  sequence: number | null;
  /** The seat or grant that its event is about. */
  subjectId: string | null;
  dueInSeconds: number | null;
  /** Its slot: null without one, else whether an attempt holds it. */
  hasAttempt: boolean | null;
}

export interface ReceiverState {
  concurrency: number;
  isFailing: boolean;
  exhaustedInRow: number;
  retryAfterSeconds: number | null;
  isGone: boolean;
  nextSequence: number;
}

/** How an attempt ends; `failed` with 500 after 100 ms by default. */
interface Ending {
  outcome?: AttemptOutcome;
  status?: number | null;
  waitMs?: number;
  tookMs?: number;
  retryAfterS?: number | null;
}

/** Sets up a database, and the engine's statements over the worker's login. */
export async function setupEngine(onFinished?: OnFinished) {
  const { database, owner } = await setupDatabase(onFinished);
  const engine = new Engine(database, owner);
  onFinished?.(() => engine.worker.end());
  return engine;
}

/** The statements of the engine; the caller plays Temporal and the receivers. */
export class Engine {
  readonly worker: Pool;
  readonly owner: Pool;
  readonly database: Database;
  readonly statements: Statements = { ...originals };
  /** The statements that were sent since it was cleared. */
  readonly sent = new Set<keyof Statements>();

  constructor(database: TestDatabase, owner: Database) {
    // Above what a statement waits for in a scenario; below what a mutant that waits for ever may take.
    this.worker = new Pool({ connectionString: database.urls.worker, max: 12, lock_timeout: 3_000 });
    this.worker.on('error', () => {});
    this.owner = owner.pool;
    this.database = owner;
  }

  /** Settles everything, so that what follows sees only its own rows. */
  async reset(): Promise<void> {
    await this.owner.query(`
      delete from slot;
      update delivery set state = 'cancelled', due_at = null, settled_at = now() where due_at is not null;
      update receiver set failing_since = null, gone_at = null where failing_since is not null or gone_at is not null;
      update webhook set state_at = now() - interval '3 hours' where state_at > now() - interval '2 hours'`);
  }

  private async send<Row>(statement: keyof Statements, values: unknown[], connection: Queryable = this.worker) {
    this.sent.add(statement);
    const { rows } = await connection.query({ text: this.statements[statement], values });
    return rows as Row[];
  }

  /**
   * Inserts a webhook, in a new organization by default, and `events` events of its organization.
   */
  async webhook({ organizationId, host = randomUUID(), events = 0 }: NewWebhook = {}): Promise<Hook> {
    const org = organizationId ?? randomUUID();
    if (organizationId === undefined)
      await this.owner.query(
        `insert into organization (id, name, slug, kind, status) values ($1, 'Harbor', $2, 'law_firm', 'active')`,
        [org, `org-${org}`],
      );
    const { rows } = await this.owner.query<{ id: string }>(
      `insert into webhook (organization_id, url, event_types, number)
       select $1, 'https://' || $2 || '/hooks', '{seat.given, seat.ended}', coalesce(max(number), 0) + 1
       from webhook where organization_id = $1 returning id`,
      [org, host],
    );
    const webhookId = rows[0]?.id ?? '';
    await this.owner.query('insert into webhook_secret (organization_id, webhook_id, sealed) values ($1, $2, $3)', [
      org,
      webhookId,
      Buffer.from('sealed'),
    ]);
    await this.events(org, events);
    return { organizationId: org, webhookId };
  }

  /**
   * Stores events, each in a separate transaction, oldest first. `subjectId`: the seat or grant that
   * they are about.
   */
  async events(
    organizationId: string,
    count: number,
    subjectId: string | null = null,
    type = 'seat.given',
  ): Promise<void> {
    for (let made = 0; made < count; made += 1)
      await this.owner.query(`select record_event($1, $3, '{}', $2)`, [organizationId, subjectId, type]);
  }

  /** Claims what the given webhooks have; all with queued deliveries by default. */
  async claim(
    hooks: readonly Hook[],
    { healthy = 200, degraded = 200, reserveS = 10, connection }: ClaimOptions = {},
  ): Promise<ClaimedDelivery[]> {
    const values = [hooks.map((hook) => hook.organizationId), hooks.map((hook) => hook.webhookId)];
    return this.send('claimDeliveriesSql', [...values, healthy, degraded, reserveS], connection);
  }

  listQueued = () => this.send<Hook & { state: string; mustWait: boolean }>('listQueuedSql', [nil, nil, 1000]);

  async returnClaims(claims: readonly Run[]): Promise<void> {
    const columns = (['organizationId', 'webhookId', 'eventId', 'run'] as const).map((name) =>
      claims.map((claim) => claim[name]),
    );
    await this.send('returnClaimsSql', columns);
  }

  /** Asks for an attempt once. */
  async ask(run: Run, id: string = randomUUID(), connection?: Queryable, slotS = 25): Promise<AdmissionRow> {
    const values = [run.organizationId, run.webhookId, run.eventId, run.run, id, scheduleWaitsMs, slotS];
    const [row, ...others] = await this.send<AdmissionRow>('admitAttemptSql', values, connection);
    if (row === undefined || others.length > 0) throw new Error('not one decision');
    return row;
  }

  /** Asks for an attempt that must be admitted. */
  async admit(run: Run): Promise<Attempt> {
    const id = randomUUID();
    const row = await this.ask(run, id);
    if (row.decision !== 'admitted') throw new Error(`not admitted: ${row.decision}`);
    return { ...run, ...row, id };
  }

  /** Undoes an admission, as a failover of PostgreSQL does that loses its commit and not the claim's. */
  async forgetAdmission({ webhookId }: Hook): Promise<void> {
    await this.owner.query('delete from delivery_attempt where webhook_id = $1', [webhookId]);
    await this.owner.query('update slot set attempt_id = null, admitted_at = null where webhook_id = $1', [webhookId]);
  }

  async record(attempt: Attempt, ending: Ending = {}, connection?: Queryable): Promise<OutcomeRow | undefined> {
    const { outcome = 'failed', tookMs = 100, waitMs = 60_000, retryAfterS = null } = ending;
    const { status = outcome === 'delivered' ? 204 : outcome === 'failed' ? 500 : null } = ending;
    const [row] = await this.send<OutcomeRow>(
      'recordOutcomeSql',
      outcomeValues({
        ...attempt,
        attemptId: attempt.id,
        outcome,
        waitMs,
        signedWith: attempt.secrets?.map((secret) => secret.id) ?? [],
        status,
        cause: outcome === 'delivered' ? 'accepted' : 'answered_server_error',
        explanation: 'It was tried.',
        timings: JSON.stringify({ total: tookMs }),
        peerAddress: '192.0.2.1',
        keptBytes: 2,
        response: Buffer.from('ok'),
        encoding: 'gzip',
        headers: JSON.stringify([['via', 'a']]),
        tookMs,
        retryAfterSeconds: retryAfterS,
      }),
      connection,
    );
    return row;
  }

  /** Admits an attempt of a claimed run and records its end. */
  async attempt(run: Run, ending: Ending = {}): Promise<OutcomeRow | undefined> {
    return this.record(await this.admit(run), ending);
  }

  repair = ({ lateS = 60, waitsMs = scheduleWaitsMs } = {}) =>
    this.send<RepairedRow>('repairDeliveriesSql', [scheduleAttempts + lostRepeats, lateS, waitsMs]);

  suspend = (afterSeconds = 3600) => this.send<Hook & { reason: string }>('suspendWebhooksSql', [afterSeconds]);
  /** Looks up blocked deliveries, the first page of them. Returns how many it unblocked. */
  async unblock(): Promise<number> {
    const [row] = await this.send<UnblockedRow>('unblockSql', [nil, nil]);
    return row?.unblocked ?? 0;
  }
  requeueHeld = () => this.send<ChangedDeliveriesRow>('requeueHeldSql', []);
  async cancelDeleted(webhookIds: string[] = [], atMost = deliveriesPerStatement): Promise<ChangedDeliveriesRow[]> {
    this.sent.add('cancelDeletedSql');
    const text = this.statements.cancelDeletedSql.replaceAll(`limit ${deliveriesPerStatement}`, `limit ${atMost}`);
    return (await this.worker.query<ChangedDeliveriesRow>(text, [webhookIds])).rows;
  }

  async redeliver({ organizationId, webhookId, eventId }: Omit<Run, 'run'>): Promise<string | undefined> {
    const [row] = await this.send<{ how: string }>('redeliverOneSql', [organizationId, webhookId, eventId], this.owner);
    return row?.how;
  }

  async cancel({ organizationId, webhookId, eventId }: Omit<Run, 'run'>): Promise<boolean> {
    return (await this.send('cancelOneSql', [organizationId, webhookId, eventId], this.owner)).length > 0;
  }

  /**
   * Resolves when a connection that sent this text, of which PostgreSQL shows 1 KiB, waits for a
   * lock, or `ended` has resolved.
   */
  async isWaiting(text: string, ended: Promise<unknown> = new Promise(() => {})): Promise<void> {
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
    };
    void ended.then(end, end); // the caller awaits it
    const waiting = `select from pg_stat_activity where datname = current_database() -- other tests run beside
      and wait_event_type = 'Lock' and query <> '' and starts_with($1, query)`;
    const isOver = async () => hasEnded || (await this.owner.query(waiting, [text])).rowCount === 1;
    await expect.poll(isOver, { timeout: 20_000 }).toBe(true);
  }

  /** Pauses, resumes or deletes a webhook, as a person does. */
  async change({ webhookId }: Hook, state: WebhookState): Promise<void> {
    await this.owner.query(
      `update webhook set state = $2, suspended_reason = case $2 when 'suspended' then 'failures' end,
         number = case when $2 <> 'deleted' then number end where id = $1`,
      [webhookId, state],
    );
  }

  /**
   * Lets time pass for a webhook: makes everything older that statements compare with the clock or with each other.
   * Less than 0 seconds: PostgreSQL's clock was set back.
   */
  async pass(hooks: readonly Hook[], seconds: number): Promise<void> {
    const values = [hooks.map((hook) => hook.webhookId), `${seconds} s`];
    for (const change of [
      `event e set created_at = e.created_at - $2::interval from delivery d
        where d.organization_id = e.organization_id and d.event_id = e.id and d.webhook_id = any ($1)`,
      `delivery set created_at = created_at - $2::interval, due_at = due_at - $2::interval
        where webhook_id = any ($1)`,
      'slot set until = until - $2::interval, admitted_at = admitted_at - $2::interval where webhook_id = any ($1)',
      `receiver set failing_since = failing_since - $2::interval, retry_after_until = retry_after_until - $2::interval,
        posts_full_at = posts_full_at - $2::interval where webhook_id = any ($1)`,
    ])
      await this.owner.query(`update ${change}`, values);
  }

  async deliveries({ webhookId }: Hook): Promise<DeliveryState[]> {
    const { rows } = await this.owner.query<DeliveryState>(
      `select d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", d.run,
         d.state, d.failures, d.attempts, d.sequence::integer, d.subject_id as "subjectId",
         case when s.event_id is not null then s.attempt_id is not null end as "hasAttempt",
         extract(epoch from d.due_at - clock_timestamp())::float8 as "dueInSeconds"
       from delivery d left join slot s on s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
         and s.event_id = d.event_id
       where d.webhook_id = $1 order by d.created_at, d.event_id`,
      [webhookId],
    );
    return rows;
  }

  async delivery(hook: Hook): Promise<DeliveryState> {
    const [delivery] = await this.deliveries(hook);
    if (delivery === undefined) throw new Error('no delivery');
    return delivery;
  }

  async receiver({ webhookId }: Hook): Promise<ReceiverState> {
    const { rows } = await this.owner.query<ReceiverState>(
      `select concurrency, failing_since is not null as "isFailing", exhausted_in_row as "exhaustedInRow",
         extract(epoch from retry_after_until - clock_timestamp())::float8 as "retryAfterSeconds",
         gone_at is not null as "isGone",
         next_sequence::integer as "nextSequence"
       from receiver where webhook_id = $1`,
      [webhookId],
    );
    if (rows[0] === undefined) throw new Error('no receiver');
    return rows[0];
  }

  async attempts({
    webhookId,
  }: Hook): Promise<{ id: string; number: number; run: number; endsSchedule: boolean; cause: string | null }[]> {
    const { rows } = await this.owner.query(
      `select id, number, run, ends_schedule as "endsSchedule", cause from delivery_attempt where webhook_id = $1
       order by started_at, id`,
      [webhookId],
    );
    return rows;
  }

  /** Bounds the posts a second of a webhook; null removes the bound. */
  async setPostsPerSecond({ webhookId }: Hook, postsPerSecond: number | null): Promise<void> {
    await this.owner.query('update webhook set posts_per_second = $2 where id = $1', [webhookId, postsPerSecond]);
  }

  /** In how many seconds as many posts may be sent at once as ever; null without a bound. */
  async postsFullInSeconds({ webhookId }: Hook): Promise<number | null> {
    const { rows } = await this.owner.query<{ seconds: number | null }>(
      `select extract(epoch from posts_full_at - clock_timestamp())::float8 as seconds
       from receiver where webhook_id = $1`,
      [webhookId],
    );
    return rows[0]?.seconds ?? null;
  }

  async setConcurrency({ webhookId }: Hook, concurrency: number): Promise<void> {
    await this.owner.query('update receiver set concurrency = $2 where webhook_id = $1', [webhookId, concurrency]);
  }
}

interface NewWebhook {
  organizationId?: string;
  host?: string;
  events?: number;
}

interface ClaimOptions {
  healthy?: number;
  degraded?: number;
  reserveS?: number;
  connection?: Queryable;
}

/** A pool or one connection. */
interface Queryable {
  query(query: { text: string; values: unknown[] }): Promise<{ rows: unknown[] }>;
}
