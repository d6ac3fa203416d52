import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { sealSecret } from '#domain/webhooks/seal.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { deriveUuid } from '../../apps/import/generate/random.ts';

/** Part of every family's name in a run and of nothing else, so that one search finds any name. */
export const nameMark = 'Quillfeather-Ostermann';

/** Creates an organization with a professional, whose owner may give families access. */
export async function insertOrganization(pool: Pool, seed: number): Promise<{ id: string; userId: string }> {
  const id = deriveUuid('chaos', seed, 'organization');
  const userId = `usr_chaos_${seed}`;
  await pool.query(
    `insert into organization (id, name, slug, kind, status) values ($1, 'Chaos Law', $2, 'law_firm', 'active')`,
    [id, `chaos-law-${seed}`],
  );
  await pool.query('insert into seat_plan (organization_id, invoiced) values ($1, 100000)', [id]);
  await pool.query('insert into person (id) values ($1)', [userId]);
  await pool.query(
    `insert into membership (organization_id, person_id, name, email, status)
      values ($1, $2, 'Ada Rivers', 'ada@example.org', 'active')`,
    [id, userId],
  );
  await pool.query(
    `insert into membership_role (organization_id, person_id, role_id) select $1, $2, r.id from role r
      where r.organization_id is null and r.key = 'owner'`,
    [id, userId],
  );
  return { id, userId };
}

/** Creates a webhook as the console does, subscribed to all four types. */
export async function insertWebhook(
  pool: Pool,
  fields: { organizationId: string; webhookId: string; number: number; url: string; keys: SealingKeys },
): Promise<{ secret: string }> {
  const { organizationId, webhookId, number, url, keys } = fields;
  await pool.query(
    `insert into webhook (organization_id, id, url, event_types, number)
     values ($1, $2, $3, array['client.started', 'client.ended', 'seat.given', 'seat.ended'], $4)`,
    [organizationId, webhookId, url, number],
  );
  const secret = generateSecret();
  const sealed = sealSecret(secret, { organizationId, webhookId }, keys);
  const values = [organizationId, webhookId, sealed];
  await pool.query('insert into webhook_secret (organization_id, webhook_id, sealed) values ($1, $2, $3)', values);
  return { secret };
}

/**
 * Makes change number `index` (from 0); each is one event. Of every four changes, access begins, a
 * seat is assigned, the seat ends, access ends. It repeats the whole group from its first change,
 * because the database may have forgotten that one. Existing rows stay, so it can be repeated until
 * the database confirms it: a commit whose confirmation was lost with a killed server has happened.
 */
export async function makeChange(
  pool: Pool,
  organization: { id: string; userId: string },
  seed: number,
  index: number,
  deadlineMs: number,
): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    try {
      for (let nth = index - (index % 4); nth <= index; nth += 1) await change(pool, organization, seed, nth);
      return;
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await wait(200);
    }
  }
}

async function change(pool: Pool, organization: { id: string; userId: string }, seed: number, index: number) {
  const org = organization.id;
  const round = Math.floor(index / 4);
  const [family, grant, seat] = ['family', 'grant', 'seat'].map((what) => deriveUuid('chaos', seed, what, round));
  switch (index % 4) {
    case 0:
      await pool.query('insert into family (organization_id, id, name) values ($1, $2, $3) on conflict do nothing', [
        org,
        family,
        `${nameMark} ${round}`,
      ]);
      return pool.query(
        `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
         values ($1, $2, 'attorney', $3, $4, now() - interval '1 day') on conflict do nothing`,
        [org, grant, organization.userId, family],
      );
    case 1:
      return pool.query(
        'insert into seat (organization_id, id, grant_id, family_id) values ($1, $2, $3, $4) on conflict do nothing',
        [org, seat, grant, family],
      );
    case 2:
      return pool.query(
        `update seat set ended_at = clock_timestamp(), end_reason = 'ended_by_organization'
         where organization_id = $1 and id = $2 and ended_at is null`,
        [org, seat],
      );
    default:
      return pool.query(
        `update client_grant set status = 'ended', ends_at = clock_timestamp(), end_reason = 'ended'
         where organization_id = $1 and id = $2 and status = 'active'`,
        [org, grant],
      );
  }
}

/** Ids of the changed rows, which only bodies contain: `data` of the events. */
export function subjectIds(seed: number, events: number): string[] {
  const rounds = Array.from({ length: Math.ceil(events / 4) }, (_, round) => round);
  return rounds.flatMap((round) => [
    deriveUuid('chaos', seed, 'grant', round),
    deriveUuid('chaos', seed, 'seat', round),
  ]);
}
