/**
 * Seats an organization has and uses, whole numbers, and its subscriptions by `renewsAt` (null
 * last), then id. `asked.organization_id` is the organization. An organization without a plan has none invoiced and
 * shows no price. Ended seats stay as history and are not counted.
 */
export const seatCountsSql = /* sql */ `
  select json_build_object(
    'total', s.paid + coalesce(p.invoiced, 0),
    'used', (select count(*) from api.seat h where h.organization_id = asked.organization_id and h.ended_at is null),
    'paid', s.paid,
    'invoiced', coalesce(p.invoiced, 0),
    'pricePerSeat', case when p.price_currency is not null then
      json_build_object('currency', p.price_currency, 'cents', p.price_cents) end,
    'subscriptions', s.subscriptions
  )
  from (
    select
      coalesce(sum(u.quantity) filter (where u.status in ('active', 'trialing', 'past_due')), 0) as paid,
      coalesce(json_agg(json_build_object(
        'status', u.status, 'quantity', u.quantity, 'renewsAt', api.utc(u.renews_at),
        'cancelAtPeriodEnd', u.cancel_at_period_end
      ) order by u.renews_at nulls last, u.id), '[]') as subscriptions
    from api.subscription u
    where u.organization_id = asked.organization_id
  ) s
  left join api.seat_plan p on p.organization_id = asked.organization_id`;

/**
 * Which client families hold a seat (by `givenAt`, id), could hold one (by family, professional,
 * grant) and held one (newest end first, id); names only. `asked.organization_id` is the organization.
 */
export const seatFamiliesSql = /* sql */ `
  with client as (
    select g.id, g.kind, g.family_id, g.status, m.name as professional, f.name as family
    from api.client_grant g
    join api.member m on m.organization_id = g.organization_id and m.person_id = g.professional_id
    join api.family f on f.organization_id = g.organization_id and f.id = g.family_id
    where g.organization_id = asked.organization_id
  ), seat as (
    select s.id, s.grant_id, s.family_id, s.given_at, s.ended_at, s.end_reason
    from api.seat s
    where s.organization_id = asked.organization_id
  )
  select json_build_object(
    'seats', (
      select coalesce(json_agg(json_build_object(
        'id', s.id, 'grantId', s.grant_id, 'family', c.family, 'professional', c.professional, 'kind', c.kind,
          'givenAt', api.utc(s.given_at)
      ) order by s.given_at, s.id), '[]')
      from seat s join client c on c.id = s.grant_id
      where s.ended_at is null),
    'eligible', (
      select coalesce(json_agg(json_build_object(
        'grantId', c.id, 'family', c.family, 'professional', c.professional, 'kind', c.kind
      ) order by c.family, c.professional, c.id), '[]')
      from client c
      where c.status = 'active' and not exists (select from seat s where s.family_id = c.family_id
        and s.ended_at is null)),
    'ended', (
      select coalesce(json_agg(json_build_object(
        'id', s.id, 'family', c.family, 'endedAt', api.utc(s.ended_at), 'reason', s.end_reason
      ) order by s.ended_at desc, s.id), '[]')
      from seat s join client c on c.id = s.grant_id
      where s.ended_at is not null)
  )`;
