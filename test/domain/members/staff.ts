import { onTestFinished } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';
import { detailWithRename } from '#test/write-entries.ts';

/** The ids of the system roles (migration 0002). */
export const systemRole = {
  owner: '0a1f0000-0000-7000-8000-000000000001',
  admin: '0a1f0000-0000-7000-8000-000000000002',
  billing: '0a1f0000-0000-7000-8000-000000000003',
  member: '0a1f0000-0000-7000-8000-000000000005',
} as const;

/**
 * An organization with an owner, an administrator and a member, and the console's connections to
 * the database.
 */
export async function setupStaff() {
  const { database, owner, make } = await setupDatabase();
  const console = await openDatabase({
    server: parsePostgresUrl(database.urls.console),
    applicationName: 'test',
    poolMax: 8,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
  });
  onTestFinished(() => console.close());
  const orgId = await make.organization({ invoiced: 3 });
  const boss = await make.member({ orgId, roleKey: 'owner', name: 'Boss', signedIn: true });
  const admin = await make.member({ orgId, roleKey: 'admin', name: 'Admin', signedIn: true });
  const member = await make.member({ orgId, roleKey: 'member', name: 'Member', signedIn: true });
  return {
    database,
    owner,
    make,
    db: console,
    orgId,
    boss,
    admin,
    member,
    async entries() {
      const { rows } = await owner.pool.query<{
        action: string;
        person: string | null;
        detail: Record<string, unknown>;
      }>(
        `select action, person_id as person, ${detailWithRename} as detail from audit_entry
         where action !~ '^(key|webhook)' order by at, id`,
      );
      return rows;
    },
    async events() {
      const { rows } = await owner.pool.query<{ type: string; data: Record<string, unknown> }>(
        `select type, body::json -> 'data' as data from event order by id`,
      );
      return rows;
    },
    async readStatus(personId: string) {
      const { rows } = await owner.pool.query(
        'select status from membership where organization_id = $1 and person_id = $2',
        [orgId, personId],
      );
      return rows[0]?.status as string | undefined;
    },
  };
}

/** Returns how each of several concurrent calls ended: 'done' or the reason of the error. */
export async function outcomes(works: Promise<unknown>[]): Promise<string[]> {
  const settled = await Promise.allSettled(works);
  return settled
    .map((one) =>
      one.status === 'fulfilled' ? 'done' : ((one.reason as { reason?: string }).reason ?? String(one.reason)),
    )
    .sort();
}
