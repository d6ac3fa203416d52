import type { Migration } from '@mikro-orm/migrations';
import { RolesAndFunctions } from './0001-roles-and-functions.ts';
import { Organizations } from './0002-organizations.ts';
import { ClientsAndSeats } from './0003-clients-and-seats.ts';
import { ReferralsAndOutcomes } from './0004-referrals-and-outcomes.ts';
import { Keys } from './0005-keys.ts';
import { AuditLog } from './0006-audit-log.ts';
import { Webhooks } from './0007-webhooks.ts';
import { Deliveries } from './0008-deliveries.ts';
import { DeliveryFunctions } from './0009-delivery-functions.ts';
import { Ledger } from './0010-ledger.ts';
import { Identity } from './0011-identity.ts';
import { AuditLogWriters } from './0012-audit-log-writers.ts';
import { ReadApi } from './0013-read-api.ts';
import { Rights } from './0014-rights.ts';
import { Platform } from './0015-platform.ts';
import { PlatformPeople } from './0016-platform-people.ts';
import { PlatformMoney } from './0017-platform-money.ts';
import { Erasure } from './0018-erasure.ts';
import { GrantEnds } from './0019-grant-ends.ts';
import { OrganizationSettings } from './0020-organization-settings.ts';
import { Mail } from './0021-mail.ts';
import { SingleSignOn } from './0022-single-sign-on.ts';

export interface NamedMigration {
  name: string;
  class: typeof Migration & (new (...args: ConstructorParameters<typeof Migration>) => Migration);
}

/**
 * Every migration in order, one per subject. The first release freezes them; until then a change
 * edits them. From then on a new one is appended here and to `schema-version.ts`. Pods of the version
 * before continue to read and write, so it only adds what they can live with. One that they do not
 * survive, for example because it drops a column, needs a way to run after them, which comes with the
 * first such migration.
 *
 * Filled tables are `audit_entry` (every read adds a row), `event`, `delivery` and
 * `delivery_attempt`. A migration must not block their writers for more than a moment, because a
 * read fails after 5 s. The migrator stops waiting for a lock that is not free at once, and tries
 * again later. How long a lock is held depends on the migration:
 * - An index is built concurrently, by a migration that runs alone (`isTransactional` false) and
 *   can be interrupted and repeated. Of a partitioned table it builds one on each partition, and the
 *   next migration runs `create index` on the table, which uses the finished parts. `drop index` on
 *   the table is fast.
 * - A column has no default that is computed row by row, and a constraint is added `not valid` and
 *   validated by the next migration.
 * - The worker changes rows in batches, not a migration.
 */
export const migrations: readonly NamedMigration[] = [
  { name: '0001-roles-and-functions', class: RolesAndFunctions },
  { name: '0002-organizations', class: Organizations },
  { name: '0003-clients-and-seats', class: ClientsAndSeats },
  { name: '0004-referrals-and-outcomes', class: ReferralsAndOutcomes },
  { name: '0005-keys', class: Keys },
  { name: '0006-audit-log', class: AuditLog },
  { name: '0007-webhooks', class: Webhooks },
  { name: '0008-deliveries', class: Deliveries },
  { name: '0009-delivery-functions', class: DeliveryFunctions },
  { name: '0010-ledger', class: Ledger },
  { name: '0011-identity', class: Identity },
  { name: '0012-audit-log-writers', class: AuditLogWriters },
  { name: '0013-read-api', class: ReadApi },
  { name: '0014-rights', class: Rights },
  { name: '0015-platform', class: Platform },
  { name: '0016-platform-people', class: PlatformPeople },
  { name: '0017-platform-money', class: PlatformMoney },
  { name: '0018-erasure', class: Erasure },
  { name: '0019-grant-ends', class: GrantEnds },
  { name: '0020-organization-settings', class: OrganizationSettings },
  { name: '0021-mail', class: Mail },
  { name: '0022-single-sign-on', class: SingleSignOn },
];
