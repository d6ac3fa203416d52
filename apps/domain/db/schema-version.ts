import type pg from 'pg';

/** Every migration of this code, in order. `apps/migrate/migrations` has what each of them does. */
export const migrationNames = [
  '0001-roles-and-functions',
  '0002-organizations',
  '0003-clients-and-seats',
  '0004-referrals-and-outcomes',
  '0005-keys',
  '0006-audit-log',
  '0007-webhooks',
  '0008-deliveries',
  '0009-delivery-functions',
  '0010-ledger',
  '0011-identity',
  '0012-audit-log-writers',
  '0013-read-api',
  '0014-rights',
  '0015-platform',
  '0016-platform-people',
  '0017-platform-money',
  '0018-erasure',
  '0019-grant-ends',
  '0020-organization-settings',
  '0021-mail',
  '0022-single-sign-on',
] as const;

/** The newest migration, which a database must have. */
export const currentMigration = migrationNames[migrationNames.length - 1] as (typeof migrationNames)[number];

/** What PostgreSQL answers before the first migration: no such table or schema, or no right to it. */
const notMigrated = new Set(['42P01', '3F000', '42501']);

/**
 * Returns whether a database has the migration that this code needs.
 *
 * @throws Error of a database that cannot be asked.
 */
export async function isSchemaCurrent(database: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  try {
    const { rowCount } = await database.query('select from api.schema_version v where v.name = $1', [currentMigration]);
    return rowCount === 1;
  } catch (error) {
    if (notMigrated.has((error as { code?: string }).code ?? '')) return false;
    throw error;
  }
}
