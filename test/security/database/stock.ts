/** A database with rows of every kind, young ones and ones that may be gone. */
import type { Pool } from 'pg';
import type { ConsoleInstallation } from '../../console/setup.ts';
import { arrange, type Scene } from '../console/scene.ts';

const dayMs = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs);

/** Two organizations with objects of every kind, and rows of each age. */
export async function stockDatabase(t: ConsoleInstallation): Promise<[Scene, Scene]> {
  const { make, owner } = t;
  const { pool } = owner;
  const scenes: [Scene, Scene] = [await arrange(t, 'Harbor'), await arrange(t, 'Elsewhere')];
  for (const { webhook, orgId, owner: person, key } of scenes) {
    for (const days of [200, 32, 30, 1]) {
      const [createdAt, settledAt] = [daysAgo(days), daysAgo(days)];
      await make.delivery({ webhook, state: 'delivered', createdAt, settledAt, attempts: [{ status: 200 }] });
    }
    await pool.query(`update delivery set rolled_up = true where organization_id = $1 and settled_at is not null`, [
      orgId,
    ]);
    await pool.query(
      `update event e set rolled_up = true where organization_id = $1 and not exists (
      select from delivery d where d.organization_id = e.organization_id and d.event_id = e.id and not d.rolled_up)`,
      [orgId],
    );
    for (const days of [600, 150, 89, 40, 1, 0]) await recordAt(pool, daysAgo(days), [orgId, person.personId, key.id]);
    await pool.query(
      `insert into webhook_secret (organization_id, webhook_id, sealed, valid_until)
      select organization_id, webhook_id, sealed, now() + n * interval '1 hour'
      from webhook_secret, unnest('{-1,24}'::int[]) n
      where organization_id = $1 and valid_until is null`,
      [orgId],
    );
    await pool.query(
      `insert into console_session (token_hash, person_id, state, created_at, last_seen_at, expires_at,
        second_factor_at, user_agent)
      select sha256($2::bytea), $1, 'full', now() - interval '2 days', now() - interval '1 day',
        now() - interval '1 hour', now() - interval '2 days', ''`,
      [person.personId, Buffer.from(orgId)],
    );
    await pool.query(
      `insert into sign_in_failure select encode(sha256($1::bytea || n::text::bytea), 'hex'), 1,
        extract(epoch from now() + n * interval '1 hour') * 1000
      from unnest('{-1,1,24}'::int[]) n`,
      [Buffer.from(orgId)],
    );
  }
  await pool.query(
    'update console_session set second_factor_at = now(), last_seen_at = now() where expires_at > now()',
  );
  await eraseOne(t, scenes[0]);
  await pool.query('select append_audit_chain(100000)');
  return scenes;
}

/** Erases a family with days of each age, and leaves the erasure open with a response that came late. */
async function eraseOne({ make, owner: { pool } }: ConsoleInstallation, scene: Scene): Promise<void> {
  const { orgId, owner, webhook } = scene;
  const familyId = await make.family({ orgId });
  const grant = await make.grant({ professional: { orgId, userId: owner.personId, roleId: null }, familyId });
  await pool.query(
    `insert into family_day select $1, $2, current_date - n, 1, 1, 1, 1, 1, 1 from generate_series(80, 100) n`,
    [orgId, familyId],
  );
  await pool.query(`select platform.erase($1, 'case-1', 'orgctl')`, [familyId]);
  // Days that left the window after the erasure.
  await pool.query(
    `insert into family_day select organization_id, kept_as, current_date - n, 1, 1, 1, 1, 1, 1
     from erasure, generate_series(95, 100) n`,
  );
  const eventId = await make.delivery({ webhook, state: 'delivered', attempts: [{ status: 200 }] });
  await pool.query(`update event set subject_id = $2 where id = $1`, [eventId, grant.id]);
  await pool.query(`update delivery_attempt set response = 'late' where event_id = $1`, [eventId]);
  await pool.query(
    `update delivery set settled_at = settled_at - interval '6 minutes'
     where settled_at > now() - interval '6 minutes'`,
  );
  await pool.query(
    `update delivery set state = 'cancelled', due_at = null, settled_at = now() - interval '6 minutes'
     where settled_at is null and event_id in (select id from event where subject_id = $1)`,
    [grant.id],
  );
  await pool.query(`update erasure set erased_at = erased_at - interval '10 minutes'`);
}

/** Writes a line of a past day, into the partition of its month. */
async function recordAt(pool: Pool, at: Date, [orgId, personId, keyId]: [string, string, string]): Promise<void> {
  const month = at.toISOString().slice(0, 7);
  const name = month.replace('-', '_');
  await pool.query(
    `do $$ declare first timestamptz := '${month}-01T00:00Z'; begin
      if to_regclass('public.audit_entry_${name}') is null then
        execute format('create table audit_entry_${name} partition of audit_entry for values from (%L) to (%L)',
          first, (first at time zone 'UTC' + interval '1 month') at time zone 'UTC');
      end if; end $$`,
  );
  await pool.query(
    `insert into audit_entry (at, organization_id, person_id, key_id, action, status)
     values ($1, $2, $3, null, 'role.create', null), ($1, $2, $3, $4, 'api.getOrg', 200)`,
    [at, orgId, personId, keyId],
  );
}
