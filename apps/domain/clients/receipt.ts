import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import { isAttempting, nextAttemptAt } from '../webhooks/deliveries.ts';
import type { WebhookState } from '../webhooks/webhook.entity.ts';

/** What the service can prove of the end of one access. Times are UTC. */
export interface Receipt {
  /** When it was read, by the database's clock. */
  asOf: string;
  /** Every read that ended before shows the access as active. */
  stoppedAt: string;
  /** The event `client.ended`; null until it is stored, and for an import without events. */
  eventId: string | null;
  /** Whether the end is stored. Where a planned end came, reads stop up to a second before. */
  isStored: boolean;
  /** Whether the log's entry of what the receivers answered has been purged, after the deliveries. */
  isPurged: boolean;
  /**
   * The entries of the audit log, oldest first: of who ended it, of the end, and of what the receivers
   * answered.
   */
  entries: ReceiptEntry[];
  /** Who or what ended it, as far as the log knows. */
  endedBy: EndedBy;
  /** Who the event was sent to: the webhooks that subscribed to it when access ended. */
  receivers: ReceiptReceiver[];
}

export interface ReceiptEntry {
  id: string;
  action: string;
  at: string;
}

/**
 * What ended access: `member`, `operator`, `platform` (who asked for it there is not known here),
 * `import`, `erasure` of the family, or the planned end (`clock`). Null: not known.
 */
export interface EndedBy {
  kind: 'member' | 'operator' | 'platform' | 'import' | 'erasure' | 'clock' | null;
  /** Of a member. The name is that of the time, and the roles are those of now. */
  personId: string | null;
  name: string | null;
  roles: string[];
}

/** One receiver of the event. A row says no more than what was recorded. */
export interface ReceiptReceiver {
  webhookId: string;
  description: string;
  url: string;
  webhookState: WebhookState;
  state: 'queued' | 'running' | 'blocked' | 'delivered' | 'exhausted' | 'cancelled';
  /** When the first 2xx had arrived; null without one. */
  acknowledgedAt: string | null;
  /** Of that response; null without one, and once only the log has the delivery. */
  status: number | null;
  /** Attempts that were interrupted: the receiver may have accepted them. */
  lost: number;
  /** Attempts that have ended, also lost ones; null once only the log has the delivery. */
  attempts: number | null;
  isAttempting: boolean;
  /** Null unless it waits for that time. */
  nextAttemptAt: string | null;
}

/**
 * Returns the receipt of access that has ended; null for access that has not, and for access that no read
 * ever showed as active. Deliveries are those of the tables; what retention has purged is as the log has
 * it. All of it is one statement, so that no part is newer than another.
 */
export async function findReceipt(db: Queryable, organizationId: string, grantId: string): Promise<Receipt | null> {
  const [receipt] = await db.query(sql<Receipt>`
    select api.utc(now()) as "asOf", api.utc(n.stopped_at) as "stoppedAt", n.event_id as "eventId",
      n.entry_id is not null as "isStored",
      n.notified_entry_id is not null and not exists (select from audit_entry a
        where a.organization_id = n.organization_id and a.id = n.notified_entry_id) as "isPurged",
      (select coalesce(json_agg(json_build_object('id', a.id, 'action', a.action, 'at', api.utc(a.at))
          order by a.at, a.id
        ), '[]') from audit_entry a
        where a.organization_id = n.organization_id and a.id in (n.entry_id, n.notified_entry_id, c.id)) as entries,
      json_build_object('kind', case
          when c.action in ('grant.end', 'grant.move') and c.person_id is not null then 'member'
          when c.action in ('grant.end', 'grant.move') then 'operator'
          when c.action in ('platform.end_grant', 'platform.move_grant') then 'platform'
          when c.action = 'family.erase' then 'erasure'
          when c.action is not null then 'import'
          when n.stopped_at = g.ends_at then 'clock'
        end, 'personId', c.person_id, 'name', coalesce(c.names ->> 'person', m.name),
        'roles', (select coalesce(json_agg(r.name order by r.position nulls last, r.id
          ), '[]') from membership_role mr
          join role r on r.id = mr.role_id
          where mr.organization_id = n.organization_id and mr.person_id = c.person_id)) as "endedBy",
      (select coalesce(json_agg(json_build_object('webhookId', w.id, 'description', w.description, 'url', w.url,
          'webhookState', w.state, 'state', r.state, 'acknowledgedAt', r.acknowledged_at, 'status', r.status,
          'lost', r.lost, 'attempts', r.attempts, 'isAttempting', r.is_attempting,
          'nextAttemptAt', api.utc(r.next_attempt_at)) order by w.number, w.id), '[]')
        from (${receivers}) r
        join webhook w on w.organization_id = n.organization_id and w.id = r.webhook_id) as receivers
    from grant_end n
    join client_grant g on g.organization_id = n.organization_id and g.id = n.grant_id
    left join lateral (${causes}) c on true
    left join membership m on m.organization_id = n.organization_id and m.person_id = c.person_id
    where n.organization_id = ${organizationId}::uuid and n.grant_id = ${grantId}::uuid and n.stopped_at <= now()`);
  return receipt ?? null;
}

/**
 * The entry of what ended the access of `n`. Its transaction wrote that of the end too, so both have the
 * same time. An import and an erasure have one entry for all that they end.
 */
const causes = sql`
  select a.id, a.action, a.person_id, a.names from audit_entry e
  join audit_entry a on a.organization_id = e.organization_id and a.at = e.at
  where e.organization_id = n.organization_id and e.id = n.entry_id
    and (a.action in ('import', 'import.backfill', 'family.erase')
      or a.action in ('grant.end', 'grant.move', 'platform.end_grant', 'platform.move_grant')
        and a.detail ->> 'grantId' = n.grant_id::text)
  order by a.serial limit 1`;

/** The receivers of the event of `n`. */
const receivers = sql`
  select d.webhook_id, d.state, api.utc(p.acknowledged_at) as acknowledged_at, p.status, p.lost, d.attempts,
    ${isAttempting} as is_attempting, ${nextAttemptAt} as next_attempt_at
  from delivery d cross join lateral delivery_response(d.organization_id, d.webhook_id, d.event_id) p
  where d.organization_id = n.organization_id and d.event_id = n.event_id
  union all
  select (l.receiver ->> 'webhookId')::uuid, l.receiver ->> 'state', l.receiver ->> 'acknowledgedAt', null,
    coalesce((l.receiver ->> 'lost')::integer, 0), null, false, null
  from audit_entry a cross join lateral jsonb_array_elements(a.detail -> 'receivers') l (receiver)
  where a.organization_id = n.organization_id and a.id = n.notified_entry_id and not exists (
    select from delivery d where d.organization_id = n.organization_id and d.event_id = n.event_id
      and d.webhook_id::text = l.receiver ->> 'webhookId')`;

/**
 * What a receipt says of a receiver. `unknown`: an attempt was interrupted, and none was acknowledged.
 * `unsent`: nothing is sent while the webhook stays as it is, or at all.
 */
export type ReceiptResult = 'acknowledged' | 'unknown' | 'pending' | 'unsent' | 'failed';

/** Returns what a receipt says of a receiver. */
export function getReceiptResult(r: ReceiptReceiver): ReceiptResult {
  if (r.acknowledgedAt !== null) return 'acknowledged';
  if (r.lost > 0) return 'unknown';
  if (r.state === 'exhausted') return 'failed';
  // An attempt that has begun may still be accepted.
  if (r.isAttempting) return 'pending';
  return r.state === 'cancelled' || r.webhookState !== 'active' ? 'unsent' : 'pending';
}
