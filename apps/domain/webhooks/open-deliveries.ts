import { isSendingSql } from './delivery-switch.ts';

/**
 * Whether a delivery `d` is open, for statements that read the index of open deliveries. The second
 * condition is always true. It keeps statements that do not name it from that index: the claim read
 * all queued deliveries of a webhook with it, after many others had been settled.
 */
export const isOpenSql = /* sql */ `(d.state in ('queued', 'running', 'blocked') and d.run >= 0)`;

/** Whether a webhook `w` is paused or suspended, and holds its open deliveries. */
export const isHoldingSql = /* sql */ `w.state in ('paused', 'suspended')`;

/** Whether the receiver `r` has asked to wait and its time lasts, an hour at most; null when it did not ask. */
export const hasRetryAfterSql = /* sql */ `not is_due(r.retry_after_until, interval '1 hour')`;

/**
 * Whether the bound of posts a second of the webhook `w` is in use: it was sent something lately, and does not yet
 * have as many posts as ever. Not for the time of a clock that was set back.
 */
const usesItsBoundSql = /* sql */ `(w.posts_per_second is not null and exists (
      select from receiver b where b.organization_id = w.organization_id and b.webhook_id = w.id
        and not is_due(b.posts_full_at, interval '2 seconds')))`;

const isLate = /* sql */ `d.due_at < statement_timestamp() - interval '1 minute'`;
const isAhead = /* sql */ `d.failures = 0 and d.due_at > statement_timestamp() + interval '10 seconds'`;

const buildOverdueSql = (state: 'queued' | 'running', isOverdue: string) => /* sql */ `(
      select least(d.due_at, statement_timestamp()) as due_at from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = '${state}'
        and ${isOverdue} and not exists (
          select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
            and s.event_id = d.event_id)
      limit 1000)`;

/**
 * The deliveries of the webhook `w` that have been due for more than a minute and are not attempted
 * now, as a row `(count, oldest)`. One that has not failed is queued to be claimed at once: when it
 * is still there and its time is ahead, the clock was set back since, and nothing says for how long
 * it has waited. What a bound of posts a second delays, which the owner of the webhook has set, is not overdue. It
 * counts 1,000 at most, so that the backlog of one webhook hides no other in a sum,
 * and is not read whole.
 */
export const overdueOfWebhookSql = /* sql */ `(
    select count(*) as count, min(l.due_at) as oldest from (
      ${buildOverdueSql('queued', `(${isLate} or ${isAhead})`)}
      union all ${buildOverdueSql('running', isLate)} limit 1000
    ) l where ${isSendingSql} and not ${usesItsBoundSql})`;
