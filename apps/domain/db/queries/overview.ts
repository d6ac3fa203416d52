import type { Pool } from 'pg';

/** An organization in numbers, for the console's first page. */
export interface Overview {
  /** Keys that are neither revoked nor expired. */
  liveKeys: number;
  /** Whether a key has read something in the last seven days. */
  keyUsed: boolean;
  /** Webhooks that are not deleted, and those of them that are parked. */
  webhooks: number;
  parkedWebhooks: number;
  /** Deliveries under way or waiting for their next attempt. */
  waitingDeliveries: number;
  /** Whether a webhook has ever accepted a delivery. */
  delivered: boolean;
  activeMembers: number;
  activeFamilies: number;
  seatsUsed: number;
}

/** `$1` organization. Each part starts at an index of the organization; the two questions about the past end at the first row that answers them. */
const overviewSql = /* sql */ `
  select
    (select count(*)::int from api_key k where k.organization_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())) as "liveKeys",
    exists (
      select from activity a where a.organization_id = $1 and a.at > now() - interval '7 days' and a.key_id is not null and a.status < 400
    ) as "keyUsed",
    (select count(*)::int from webhook w where w.organization_id = $1 and w.state <> 'deleted') as webhooks,
    (select count(*)::int from webhook w where w.organization_id = $1 and w.state = 'parked') as "parkedWebhooks",
    (select count(*)::int from delivery d where d.organization_id = $1 and d.state = 'waiting') as "waitingDeliveries",
    exists (select from delivery d where d.organization_id = $1 and d.state = 'delivered') as delivered,
    (select count(*)::int from membership m where m.organization_id = $1 and m.status = 'active') as "activeMembers",
    (select count(distinct g.family_id)::int from client_grant g where g.organization_id = $1 and g.status = 'active') as "activeFamilies",
    (select count(*)::int from seat s where s.organization_id = $1 and s.ended_at is null) as "seatsUsed"`;

export async function getOverview(pool: Pool, organizationId: string): Promise<Overview> {
  const { rows } = await pool.query<Overview>({ name: 'getOverview', text: overviewSql, values: [organizationId] });
  return rows[0] as Overview;
}
