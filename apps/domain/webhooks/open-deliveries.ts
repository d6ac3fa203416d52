import { isSendingSql } from './delivery-switch.ts';

/**
 * Whether a delivery `d` is open, for statements that read the index of open deliveries. The second
 * condition is always true. It keeps statements that do not name it from that index: the claim read
 * all queued deliveries of a webhook with it, after many others had been settled.
 */
export const isOpenSql = /* sql */ `(d.state in ('queued', 'running', 'blocked') and d.run >= 0)`;

/** Whether a webhook `w` is paused or suspended, and holds its open deliveries. */
export const isHoldingSql = /* sql */ `w.state in ('paused', 'suspended')`;

const buildOverdueSql = (state: 'queued' | 'running') => /* sql */ `(select d.due_at from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = '${state}'
        and d.due_at < statement_timestamp() - interval '1 minute' and not exists (
          select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
            and s.event_id = d.event_id)
      limit 1000)`;

/**
 * The deliveries of the webhook `w` that have been due for more than a minute and are not attempted
 * now, as a row `(count, oldest)`. It counts 1,000 at most, so that the backlog of one webhook
 * hides no other in a sum, and is not read whole.
 */
export const overdueOfWebhookSql = /* sql */ `(
    select count(*) as count, min(l.due_at) as oldest from (
      ${buildOverdueSql('queued')} union all ${buildOverdueSql('running')} limit 1000
    ) l where ${isSendingSql})`;
