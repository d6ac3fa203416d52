/**
 * Seats an organization has and uses, whole numbers, and its subscriptions by `renewsAt` (null
 * last), then id. `request.organization_id` is the organization. An organization without a plan has
 * none invoiced and shows no price. Ended seats stay as history and are not counted.
 */
export const seatCountsSql = /* sql */ `
  select row_to_json(r) from (
    select s.paid + coalesce(p.invoiced, 0) as total,
      (select count(*) from api.seat h
        where h.organization_id = request.organization_id and h.ended_at is null) as used,
      s.paid, coalesce(p.invoiced, 0) as invoiced,
      case when p.price_currency is not null then
        (select row_to_json(c) from (select p.price_currency as currency, p.price_cents as cents) c) end
        as "pricePerSeat",
      s.subscriptions
    from (
      select coalesce(sum(u.quantity) filter (where u.status in ('active', 'trialing', 'past_due')), 0) as paid,
        coalesce(array_to_json(array_agg(
          (select row_to_json(o) from (
            select u.status, u.quantity, api.utc(u.renews_at) as "renewsAt",
              u.cancel_at_period_end as "cancelAtPeriodEnd") o)
          order by u.renews_at nulls last, u.id)), '[]') as subscriptions
      from api.subscription u
      where u.organization_id = request.organization_id
    ) s
    left join api.seat_plan p on p.organization_id = request.organization_id
  ) r`;

/**
 * Which client families have a seat (by `givenAt`, id), could have one (by family, professional,
 * grant) and had one (newest end first, id); names only. `request.organization_id` is the
 * organization.
 */
export const seatFamiliesSql = /* sql */ `
  with client as (
    select g.id, g.kind, g.family_id, g.status, m.name as professional, f.name as family
    from api.client_grant g
    join api.member m on m.organization_id = g.organization_id and m.person_id = g.professional_id
    join api.family f on f.organization_id = g.organization_id and f.id = g.family_id
    where g.organization_id = request.organization_id
  ), seat as (
    select s.id, s.grant_id, s.family_id, s.given_at, s.ended_at, s.end_reason
    from api.seat s
    where s.organization_id = request.organization_id
  )
  select row_to_json(r) from (
    select array_to_json(array(
      select row_to_json(o) from (
        select s.id, s.grant_id as "grantId", c.family, c.professional, c.kind, api.utc(s.given_at) as "givenAt"
        from seat s join client c on c.id = s.grant_id
        where s.ended_at is null
        order by s.given_at, s.id
      ) o)) as seats,
    array_to_json(array(
      select row_to_json(o) from (
        select c.id as "grantId", c.family, c.professional, c.kind
        from client c
        where c.status = 'active' and not exists (
          select from seat s where s.family_id = c.family_id and s.ended_at is null)
        order by c.family, c.professional, c.id
      ) o)) as eligible,
    array_to_json(array(
      select row_to_json(o) from (
        select s.id, c.family, api.utc(s.ended_at) as "endedAt", s.end_reason as reason
        from seat s join client c on c.id = s.grant_id
        where s.ended_at is not null
        order by s.ended_at desc, s.id
      ) o)) as ended
  ) r`;
