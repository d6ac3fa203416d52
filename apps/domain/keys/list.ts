import { type RawBuilder, sql } from 'kysely';
import type { Scope } from '../contract/scopes.ts';
import type { Queryable } from '../db/database.ts';
import { withDates } from '../db/statement.ts';
import { ApiKey, type KeyState } from './api-key.entity.ts';

/** A key with its use and rotation. `working`: the scopes that its creator still holds. */
export interface KeyUsage {
  id: string;
  /** Its number among the organization's valid keys, by which emails name it; null once it has ended. */
  number: number | null;
  label: string;
  description: string;
  /** Blocks from which it may be used, in CIDR form; none: from every address. */
  allowedAddresses: string[];
  hint: string;
  creatorId: string;
  creatorName: string;
  creatorStatus: 'invited' | 'active' | 'suspended' | 'left';
  scopes: Scope[];
  working: Scope[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /**
   * When its creator left the organization, which made the key inactive; null while they have not.
   */
  creatorLeftAt: Date | null;
  state: KeyState;
  /** The last call, rejected ones included, except calls over the limit; null: none in the audit log. */
  lastUsedAt: Date | null;
  /** Such calls of the last 24 hours (UTC), this one included, up to the last run of the sums. */
  uses24h: number;
  predecessorId: string | null;
  /** The newest successor from a rotation. */
  successorId: string | null;
}

const endedPerPage = 25;

/** Matches calls with a response, except calls over the limit. */
const isUse = sql`a.status is not null and a.status <> 429`;

/** Returns the keys of an organization that match `which`, a condition on `k` with the order. */
async function selectUsage(
  db: Queryable,
  organizationId: string,
  now: Date,
  which: RawBuilder<unknown>,
): Promise<KeyUsage[]> {
  const rows = await db.query(sql<KeyUsage>`
  select k.id, k.number, k.label, k.description, k.allowed_addresses::text[] as "allowedAddresses", k.hint,
    k.creator_id as "creatorId", coalesce(m.name, k.creator_id) as "creatorName",
    coalesce(m.status, 'left') as "creatorStatus", k.scopes,
    array(
      select u.scope from unnest(k.scopes) with ordinality as u (scope, ordinal)
      where k.creator_left_at is null and m.status = 'active' and exists (
        select from membership_role mr join role r on r.id = mr.role_id
        where mr.organization_id = m.organization_id and mr.person_id = m.person_id and u.scope = any(r.permissions))
      order by u.ordinal
    ) as working,
    k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt",
      k.creator_left_at as "creatorLeftAt",
    case when k.revoked_at is not null then 'revoked' when k.expires_at <= ${now}::timestamptz then 'expired'
      when k.creator_left_at is not null then 'inactive' else 'valid' end as state,
    (select a.at from audit_entry a where a.organization_id = k.organization_id and a.key_id = k.id and ${isUse}
      order by a.at desc, a.id desc limit 1) as "lastUsedAt",
    coalesce(u.uses, 0)::float8 as "uses24h",
    k.predecessor_id as "predecessorId",
    (select s.id from api_key s where s.organization_id = k.organization_id and s.predecessor_id = k.id
      order by s.id desc limit 1) as "successorId"
  from api_key k
  left join membership m on m.organization_id = k.organization_id and m.person_id = k.creator_id
  left join (
    select s.key_id, sum(s.calls) as uses from call_sum s
    where s.organization_id = ${organizationId} and s.unit = 'hour'
      and s.starts_at > ${now}::timestamptz - interval '24 hours'
      and s.status <> 429
    group by s.key_id
  ) u on u.key_id = k.id
  where k.organization_id = ${organizationId} ${which}`);
  return rows.map((row) => withDates(row, 'createdAt', 'expiresAt', 'revokedAt', 'creatorLeftAt', 'lastUsedAt'));
}

/** Lists the valid keys of an organization, newest first: 25 at most. */
export const listValidKeys = (db: Queryable, organizationId: string, now: Date): Promise<KeyUsage[]> =>
  selectUsage(
    db,
    organizationId,
    now,
    sql`and k.revoked_at is null and k.creator_left_at is null
      and (k.expires_at is null or k.expires_at > ${now}::timestamptz)
    order by k.id desc`,
  );

/** Lists ended keys, newest first. `older` is the `before` of the next page; null at the end. */
export async function listEndedKeys(
  db: Queryable,
  organizationId: string,
  before: string | null,
  now: Date,
): Promise<{ keys: KeyUsage[]; older: string | null }> {
  const rows = await selectUsage(
    db,
    organizationId,
    now,
    sql`and (k.revoked_at is not null or k.creator_left_at is not null or k.expires_at <= ${now}::timestamptz)
      and (${before}::uuid is null or k.id < ${before}::uuid)
    order by k.id desc limit ${endedPerPage + 1}`,
  );
  const keys = rows.slice(0, endedPerPage);
  return { keys, older: rows.length > endedPerPage ? (keys.at(-1)?.id ?? null) : null };
}

/** Returns one key; null when the organization has no such key. */
export async function findKeyUsage(
  db: Queryable,
  organizationId: string,
  keyId: string,
  now: Date,
): Promise<KeyUsage | null> {
  const [key] = await selectUsage(db, organizationId, now, sql`and k.id = ${keyId}`);
  return key ?? null;
}

/** A caller among a key's last 1,000 uses, newest first: who a revocation affects. */
export interface KeyCaller {
  /** Null: unknown. */
  address: string | null;
  uses: number;
  lastUsedAt: Date;
}

export async function listCallers(db: Queryable, organizationId: string, keyId: string): Promise<KeyCaller[]> {
  const rows = await db.query(sql<KeyCaller>`
    select host(u.address) as address, count(*)::int as uses, max(u.at) as "lastUsedAt"
    from (
      select a.address, a.at from audit_entry a
      where a.organization_id = ${organizationId} and a.key_id = ${keyId} and ${isUse}
        order by a.at desc, a.id desc limit 1000
    ) u
    group by u.address
    order by max(u.at) desc, u.address
    limit 10`);
  return rows.map((row) => withDates(row, 'lastUsedAt'));
}

interface CreatorRole {
  id: string;
  name: string;
}

export const listCreatorRoles = (db: Queryable, organizationId: string, personId: string): Promise<CreatorRole[]> =>
  db.query(sql<CreatorRole>`
    select r.id, r.name from membership_role mr join role r on r.id = mr.role_id
    where mr.organization_id = ${organizationId} and mr.person_id = ${personId}
    order by r.position nulls last, r.name collate "und-x-icu", r.id`);

/** A key in a list. `state` is as of `now`. */
export type KeyRow = Pick<
  ApiKey,
  'id' | 'label' | 'description' | 'allowedAddresses' | 'hint' | 'creatorId' | 'scopes' | 'createdAt' | 'expiresAt'
> & { state: KeyState };

/** Returns every key that an organization ever had, oldest first. */
export async function listKeys(db: Queryable, organizationId: string, now: Date): Promise<KeyRow[]> {
  const keys = await db.find(ApiKey, { organizationId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  return keys.map((key) => {
    const { id, label, description, allowedAddresses, hint, creatorId, scopes, createdAt, expiresAt } = key;
    const texts = { label, description, allowedAddresses };
    return { id, ...texts, hint, creatorId, scopes, createdAt, expiresAt, state: key.stateAt(now) };
  });
}
