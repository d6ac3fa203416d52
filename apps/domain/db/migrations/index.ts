import { RolesAndFunctions } from './0001-roles-and-functions.ts';
import { Organizations } from './0002-organizations.ts';
import { ClientsAndSeats } from './0003-clients-and-seats.ts';
import { ReferralsAndOutcomes } from './0004-referrals-and-outcomes.ts';
import { Keys } from './0005-keys.ts';
import { Activity } from './0006-activity.ts';
import { Webhooks } from './0007-webhooks.ts';
import { Deliveries } from './0008-deliveries.ts';
import { Ledger } from './0009-ledger.ts';
import { Identity } from './0010-identity.ts';
import { Rights } from './0011-rights.ts';

/**
 * Every migration, in order, one per subject. They are frozen by the first release; until then a
 * change edits them. From then on a new one is appended here and says whether running pods survive
 * it, which go on reading and writing beside it.
 *
 * Filled tables (`activity` above all, as every read adds a line to it; `event`, `delivery`,
 * `delivery_attempt`): nothing may hold their writers up for longer than a moment, and a read gives
 * up after 5 s. The migrator stops waiting for a lock that is not free at once, and tries again
 * later; how long one is held is for the migration to see to:
 * - An index is built concurrently, by a migration that runs by itself (`isTransactional` false)
 *   and can be interrupted and repeated: of a partitioned table by `buildOnPartitions`
 *   (concurrently.ts), and the next migration says `create index` of the table, which takes the
 *   parts as they are. One is taken away by `drop index` of the table, which is quick.
 * - A column has no default that is worked out row by row, and a constraint is added `not valid`
 *   and validated by the next migration.
 * - Rows are changed in portions by the worker, not here.
 */
export const migrations = [
  { name: '0001-roles-and-functions', class: RolesAndFunctions },
  { name: '0002-organizations', class: Organizations },
  { name: '0003-clients-and-seats', class: ClientsAndSeats },
  { name: '0004-referrals-and-outcomes', class: ReferralsAndOutcomes },
  { name: '0005-keys', class: Keys },
  { name: '0006-activity', class: Activity },
  { name: '0007-webhooks', class: Webhooks },
  { name: '0008-deliveries', class: Deliveries },
  { name: '0009-ledger', class: Ledger },
  { name: '0010-identity', class: Identity },
  { name: '0011-rights', class: Rights },
];

/** The migration that a database must have for this code to serve from it. */
export const currentMigration = '0011-rights';
