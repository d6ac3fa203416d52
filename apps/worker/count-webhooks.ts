/** Webhooks that need attention, by state. */
export interface FailingWebhooks {
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
