import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { insertOrganization, insertWebhook } from '#test/webhook-changes.ts';
import { machineMs } from './clock.ts';
import type { BenchStack } from './stack.ts';

/** The database, and where webhooks of new organizations deliver to. */
export type DeliveryTarget = Pick<BenchStack, 'owner' | 'receiver' | 'sealingKeys'>;

/** An organization with one professional and one webhook for all events. */
export interface BenchOrganization {
  id: string;
  userId: string;
  webhookId: string;
}

/** A grant to start; its family exists already. */
export interface GrantChange {
  organization: BenchOrganization;
  familyId: string;
  grantId: string;
}

let organizationsMade = 0;

/**
 * Creates an organization with one or more webhooks for `path` of the receiver; `webhookId` is the
 * first one's.
 */
export async function addOrganization(stack: DeliveryTarget, path: string, webhooks = 1): Promise<BenchOrganization> {
  const { pool } = stack.owner;
  organizationsMade += 1;
  const organization = await insertOrganization(pool, organizationsMade);
  const ids = Array.from({ length: webhooks }, () => randomUUID());
  const url = `${stack.receiver.url}${path}`;
  for (const [nth, webhookId] of ids.entries())
    await insertWebhook(pool, {
      organizationId: organization.id,
      webhookId,
      number: nth + 1,
      url,
      keys: stack.sealingKeys,
    });
  return { ...organization, webhookId: ids[0] as string };
}

export async function addOrganizations(
  stack: DeliveryTarget,
  count: number,
  path = '/org-api',
): Promise<BenchOrganization[]> {
  const organizations: BenchOrganization[] = [];
  while (organizations.length < count) organizations.push(await addOrganization(stack, path));
  return organizations;
}

/**
 * Creates families for the changes, over the organizations in turn. They create no events, and
 * exist before anything is measured.
 */
export async function prepareChanges(
  pool: Pool,
  organizations: readonly BenchOrganization[],
  count: number,
): Promise<GrantChange[]> {
  const changes = Array.from({ length: count }, (_, index) => ({
    organization: organizations[index % organizations.length] as BenchOrganization,
    familyId: randomUUID(),
    grantId: randomUUID(),
  }));
  await pool.query(
    `insert into family (organization_id, id, name) select o, f, 'A family'
      from unnest($1::uuid[], $2::uuid[]) as made (o, f)`,
    [changes.map(({ organization }) => organization.id), changes.map(({ familyId }) => familyId)],
  );
  return changes;
}

async function commitChange(pool: Pool, { organization, familyId, grantId }: GrantChange): Promise<number> {
  await pool.query({
    name: 'startGrant',
    text: `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
           values ($1, $2, 'attorney', $3, $4, now() - interval '1 day')`,
    values: [organization.id, grantId, organization.userId, familyId],
  });
  return machineMs();
}

/** Commits changes over eight connections without pauses. */
export async function commitAll(pool: Pool, changes: readonly GrantChange[]): Promise<void> {
  let next = 0;
  const line = async () => {
    for (let change = changes[next++]; change !== undefined; change = changes[next++]) await commitChange(pool, change);
  };
  await Promise.all(Array.from({ length: 8 }, line));
}

/** Commits changes at a steady rate. Returns the time of each commit, by its grant. */
export async function commitPaced(
  pool: Pool,
  changes: readonly GrantChange[],
  perSecond: number,
): Promise<Map<string, number>> {
  const committedAtMs = new Map<string, number>();
  const startedAt = performance.now();
  const running: Promise<void>[] = [];
  for (const [index, change] of changes.entries()) {
    const dueInMs = startedAt + (index * 1000) / perSecond - performance.now();
    if (dueInMs > 0) await wait(dueInMs);
    running.push(commitChange(pool, change).then((atMs) => void committedAtMs.set(change.grantId, atMs)));
  }
  await Promise.all(running);
  return committedAtMs;
}

/** Queues events of an organization in one commit. */
export async function queueEvents(pool: Pool, organization: BenchOrganization, count: number): Promise<void> {
  await commitTogether(pool, await prepareChanges(pool, [organization], count));
}

/** Commits changes in one transaction. */
export async function commitTogether(pool: Pool, changes: readonly GrantChange[]): Promise<void> {
  await pool.query(
    `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
     select o, g, 'attorney', p, f, now() - interval '1 day'
     from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[]) as made (o, g, p, f)`,
    [
      changes.map(({ organization }) => organization.id),
      changes.map(({ grantId }) => grantId),
      changes.map(({ organization }) => organization.userId),
      changes.map(({ familyId }) => familyId),
    ],
  );
}

/**
 * Waits until no delivery of these organizations is open. @throws Error when that takes longer than
 * the deadline.
 */
export async function settles(
  pool: Pool,
  organizations: readonly BenchOrganization[],
  deadlineMs: number,
): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  const ids = organizations.map(({ id }) => id);
  for (;;) {
    const { rows } = await pool.query<{ waiting: number }>(
      `select count(*)::int as waiting from delivery where organization_id = any ($1) and due_at is not null`,
      [ids],
    );
    const waiting = rows[0]?.waiting ?? 0;
    if (waiting === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`${waiting} deliveries still wait after ${deadlineMs / 1000} s`);
    await wait(100);
  }
}

/**
 * Returns how many deliveries since a moment took more than one attempt, and the seconds from the
 * first event to the last settlement. @throws Error unless `deliveries` were delivered.
 */
export async function judgeDelivered(
  pool: Pool,
  since: string,
  deliveries: number,
): Promise<{ retried: number; seconds: number }> {
  const { rows } = await pool.query<{ delivered: number; retried: number; seconds: number }>(
    `select count(*) filter (where state = 'delivered')::int as delivered,
       count(*) filter (where attempts > 1)::int as retried,
       extract(epoch from max(settled_at) - min(created_at))::float8 as seconds
     from delivery where created_at >= $1::timestamptz`,
    [since],
  );
  const { delivered = 0, retried = 0, seconds = Number.NaN } = rows[0] ?? {};
  if (delivered !== deliveries) throw new Error(`${delivered} of ${deliveries} were delivered`);
  return { retried, seconds };
}

/** Returns the moment by the database's clock, for `judgeDelivered`. */
export async function readClock(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select clock_timestamp()::text as now');
  return rows[0]?.now ?? '';
}
