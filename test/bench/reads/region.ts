import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { fingerprint, generateKey, type KeySecrets } from '#domain/keys/key.ts';

/** Organizations of a region, and valid keys of each (25 at most). */
export const organizations = 1_000;
const keysEach = 20;
const professionalsEach = 4;
/** The highest rate that the keys of a region permit, with requests spread over them evenly. */
export const highestRatePerSecond = (organizations * keysEach * requestsPerWindow) / requestWindowSeconds;

/** Secrets of this run only. */
export function makeSecrets(): KeySecrets {
  return { region: 'us', peppers: [{ version: 1, secret: randomBytes(32) }], tagSecrets: [randomBytes(32)] };
}

/** A key of a region and the organization it reads. */
export interface BenchKey {
  key: string;
  organizationId: string;
}

/**
 * Fills a migrated, empty database with organizations, people and keys, without clients. Ids are
 * digests, so that they are as far apart in an index as random ones.
 */
export async function fillOrganizations(owner: pg.Client, secrets: KeySecrets): Promise<BenchKey[]> {
  await owner.query(
    `insert into organization (id, name, slug, kind, status)
     select md5('organization ' || n)::uuid, 'Organization ' || n, 'organization-' || n, 'law_firm', 'active'
     from generate_series(1, ${organizations}) n`,
  );
  await owner.query(
    `insert into person (id) select 'person-' || n || '-' || p
     from generate_series(1, ${organizations}) n, generate_series(1, ${professionalsEach}) p`,
  );
  await owner.query(
    `insert into membership (organization_id, person_id, name, email, title, status)
     select md5('organization ' || n)::uuid, 'person-' || n || '-' || p, 'Professional ' || p || ' of ' || n,
       'p' || p || '@o' || n || '.example', null, 'active'
     from generate_series(1, ${organizations}) n, generate_series(1, ${professionalsEach}) p`,
  );
  await owner.query(
    `insert into membership_role (organization_id, person_id, role_id)
     select m.organization_id, m.person_id, r.id from membership m join role r on r.organization_id is null
       and r.key = 'owner'`,
  );
  return fillKeys(owner, secrets);
}

/**
 * Keys of the first person of each organization, in the order in which requests use them: neighbors
 * belong to different organizations.
 */
async function fillKeys(owner: pg.Client, secrets: KeySecrets): Promise<BenchKey[]> {
  const { rows } = await owner.query<{ id: string; creator: string }>(
    `select organization_id as id, min(person_id) as creator from membership group by 1 order by 1`,
  );
  const keys: BenchKey[] = [];
  for (let number = 1; number <= keysEach; number += 1) {
    const made = rows.map(({ id }) => ({
      key: generateKey(secrets.region, secrets.tagSecrets[0]),
      organizationId: id,
    }));
    await owner.query(
      `insert into api_key (organization_id, creator_id, fingerprint, pepper_version, hint, scopes, expires_at, number)
       select k.organization_id, k.creator, k.fingerprint, $4, 'bench', $5, now() + interval '30 days', $6
       from unnest($1::uuid[], $2::text[], $3::bytea[]) as k (organization_id, creator, fingerprint)`,
      [
        rows.map((row) => row.id),
        rows.map((row) => row.creator),
        made.map(({ key }) => fingerprint(key, secrets.peppers[0])),
        secrets.peppers[0].version,
        scopes,
        number,
      ],
    );
    keys.push(...made);
  }
  return keys;
}

/**
 * Adds `grantsEach` clients to each organization, and one organization with `bigGrants` (none when
 * 0). Inserts sets of rows, because an import of a million would take minutes. Ends with a vacuum,
 * so that no autovacuum runs during the measurement.
 */
export async function fillGrants(owner: pg.Client, grantsEach: number, bigGrants: number): Promise<void> {
  await owner.query(
    `insert into organization (id, name, slug, kind, status)
     select md5('organization big')::uuid, 'The big one', 'organization-big', 'law_firm', 'active' where $1 > 0`,
    [bigGrants],
  );
  await owner.query(
    `insert into membership (organization_id, person_id, name, email, title, status)
     select md5('organization big')::uuid, 'person-1-' || p, 'Professional ' || p, 'p' || p || '@big.example', null,
       'active'
     from generate_series(1, ${professionalsEach}) p where $1 > 0`,
    [bigGrants],
  );
  await owner.query(`set work_mem = '64MB'; set maintenance_work_mem = '128MB'`);
  for (const [of, count] of [
    ['<>', grantsEach],
    ['=', bigGrants],
  ] as const) {
    await owner.query(
      `insert into family (organization_id, id, name)
       select o.id, md5(o.slug || ' family ' || f)::uuid, 'Family ' || f
       from organization o, generate_series(1, $1) f where o.slug ${of} 'organization-big'`,
      [count],
    );
    await owner.query(
      `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
       select m.organization_id, md5(o.slug || ' grant ' || f)::uuid, case f % 2 when 0 then 'attorney'
         else 'neutral' end, m.person_id,
         md5(o.slug || ' family ' || f)::uuid, timestamptz '2026-01-01 09:00Z' + f * interval '1 minute'
       from organization o
       join (select organization_id, person_id, row_number() over (partition by organization_id
         order by person_id) as place from membership) m
         on m.organization_id = o.id
       join generate_series(1, $1) f on f % ${professionalsEach} = m.place - 1
       where o.slug ${of} 'organization-big'`,
      [count],
    );
  }
  await owner.query('vacuum analyze');
}

/**
 * Divides the grants of a region: about a tenth in one organization, when that leaves each other
 * organization at least one.
 */
export function shareGrants(total: number): { grantsEach: number; bigGrants: number } {
  const grantsEach = Math.max(1, Math.floor((total * 0.9) / organizations));
  return { grantsEach, bigGrants: total - grantsEach * organizations };
}
