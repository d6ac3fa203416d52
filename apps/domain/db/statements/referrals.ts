/** Referral codes of `asked.organization_id` with their counts, by code, then id; one JSON array. */
export const referralCodesSql = /* sql */ `
  select coalesce(json_agg(json_build_object(
    'id', c.id, 'code', c.code, 'link', c.link, 'label', c.label, 'active', c.active,
    'counts', json_build_object('signedUp', c.signed_up, 'qualified', c.qualified, 'notCounted', c.not_counted)
  ) order by c.code, c.id), '[]')
  from api.referral_code c
  where c.organization_id = asked.organization_id`;

/** Shares of invoices that `asked.organization_id` referred, by month, then currency; one JSON object. */
export const referralEarningsSql = /* sql */ `
  select json_build_object('months', coalesce(json_agg(json_build_object(
    'month', e.month, 'currency', e.currency, 'invoices', e.invoices, 'shareCents', e.share_cents
  ) order by e.month, e.currency), '[]'))
  from api.referral_earning e
  where e.organization_id = asked.organization_id`;
