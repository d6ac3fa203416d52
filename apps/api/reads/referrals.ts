/** Referral codes of `request.organization_id` with their counts, by code, then id; one JSON array. */
export const referralCodesSql = /* sql */ `
  select array_to_json(array(
    select row_to_json(r) from (
      select c.id, c.code, c.link, c.label, c.active,
        (select row_to_json(n) from (
          select c.signed_up as "signedUp", c.qualified, c.not_counted as "notCounted") n) as counts
      from api.referral_code c
      where c.organization_id = request.organization_id
      order by c.code, c.id
    ) r))`;

/** Shares of invoices that `request.organization_id` referred, by month, then currency; one JSON object. */
export const referralEarningsSql = /* sql */ `
  select row_to_json(r) from (
    select array_to_json(array(
      select row_to_json(e) from (
        select e.month, e.currency, e.invoices, e.share_cents as "shareCents"
        from api.referral_earning e
        where e.organization_id = request.organization_id
        order by e.month, e.currency
      ) e)) as months
  ) r`;
