/**
 * Every grant of an organization with names and dates, ordered by `since`, then id, and the counts beside it. `$2` is the organization.
 *
 * Members and families are joined to the organization's whole list of grants, so the planner reads each table once by the
 * organization's index. The counts come from the same pass over the grants as the list.
 */
export const rosterSql = /* sql */ `
  select json_build_object(
    'clients', coalesce(json_agg(json_build_object(
      'grantId', g.id, 'kind', g.kind, 'professional', m.name, 'family', f.name,
      'since', api.utc(g.since), 'endsAt', api.utc(g.ends_at), 'status', g.status
    ) order by g.since, g.id), '[]'),
    'seats', json_build_object(
      'members', (select count(*) from api.member a where a.organization_id = $2 and a.status = 'active'),
      'professionalsWithClients', count(distinct g.professional_id) filter (where g.status = 'active'),
      'activeFamilies', count(distinct g.family_id) filter (where g.status = 'active')
    )
  )
  from api.client_grant g
  join api.member m on m.organization_id = g.organization_id and m.person_id = g.professional_id
  join api.family f on f.organization_id = g.organization_id and f.id = g.family_id
  where g.organization_id = $2`;
