/** An organization in `orgctl`. Times are UTC. */
export interface OrganizationRow {
  id: string;
  name: string;
  slug: string;
  kind: string;
  status: string;
  createdAt: string;
}

/** Every organization of the region, by name. No values. */
export const listOrganizationsSql = /* sql */ `
  select o.id, o.name, o.slug, o.kind, o.status, api.utc(o.created_at) as "createdAt"
  from organization o order by o.name collate "und-x-icu", o.id`;

/** An organization with the current counts of its objects. */
export interface OrganizationDetails extends OrganizationRow {
  activeMembers: number;
  activeGrants: number;
  heldSeats: number;
  validKeys: number;
  webhooks: number;
}

/** One organization, `$1`; no row when there is none. */
export const findOrganizationSql = /* sql */ `
  select o.id, o.name, o.slug, o.kind, o.status, api.utc(o.created_at) as "createdAt",
    (select count(*)::integer from membership m where m.organization_id = o.id
      and m.status = 'active') as "activeMembers",
    (select count(*)::integer from api.client_grant g where g.organization_id = o.id
      and g.status = 'active') as "activeGrants",
    (select count(*)::integer from seat s where s.organization_id = o.id and s.ended_at is null) as "heldSeats",
    (select count(*)::integer from api_key k where k.organization_id = o.id and k.revoked_at is null
      and k.creator_left_at is null and (k.expires_at is null or k.expires_at > now())) as "validKeys",
    (select count(*)::integer from webhook w where w.organization_id = o.id and w.state <> 'deleted') as webhooks
  from organization o where o.id = $1`;
