import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Pace } from './pace.ts';

/**
 * Creates events at the pace of the machine until stopped. Each is the start of a new family's grant,
 * committed with the platform's login. Resolves with the number of commits.
 */
export function startEvents(options: {
  ownerUrl: string;
  organizations: readonly { id: string; ownerUserId: string }[];
  /** The highest rate. */
  perSecond: number;
  pace: Pace;
  onError: (cause: unknown) => void;
}) {
  const { ownerUrl, organizations, perSecond, pace, onError } = options;
  const pool = new pg.Pool({ connectionString: ownerUrl, max: 4 });
  pool.on('error', () => {});
  let committed = 0;
  let number = 0;
  const underWay = new Set<Promise<void>>();

  async function one(): Promise<void> {
    const organization = organizations[number % organizations.length];
    number += 1;
    if (organization === undefined) return;
    await startGrant(pool, organization);
    committed += 1;
  }

  const end = pace.repeat(perSecond, () => {
    const promise = one()
      .catch(onError)
      .finally(() => underWay.delete(promise));
    underWay.add(promise);
  });
  return {
    async stop(): Promise<number> {
      end();
      await Promise.all(underWay);
      await pool.end();
      return committed;
    },
  };
}

/** Starts a new family's grant: one `client.started`. */
export async function startGrant(pool: pg.Pool, organization: { id: string; ownerUserId: string }): Promise<string> {
  const family = randomUUID();
  const grant = randomUUID();
  await pool.query(
    `with family as (insert into family (organization_id, id, name) values ($1, $2, 'Load family'))
     insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
       values ($1, $3, 'attorney', $4, $2, now() - interval '1 day')`,
    [organization.id, family, grant, organization.ownerUserId],
  );
  return grant;
}
