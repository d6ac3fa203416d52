import { RolesAndFunctions } from './0001-roles-and-functions.ts';
import { Organizations } from './0002-organizations.ts';
import { FamiliesAndSeats } from './0003-families-and-seats.ts';
import { ReferralsAndOutcomes } from './0004-referrals-and-outcomes.ts';
import { KeysAndActivity } from './0005-keys-and-activity.ts';
import { Rights } from './0006-rights.ts';
import { Webhooks } from './0007-webhooks.ts';
import { Ledger } from './0008-ledger.ts';
import { Redeliveries } from './0009-redeliveries.ts';
import { VerdictsAndArrivals } from './0010-verdicts-and-arrivals.ts';
import { Identity } from './0011-identity.ts';
import { OrganizationDeeds } from './0012-organization-deeds.ts';
import { ConsoleForms } from './0013-console-forms.ts';
import { ActivitySearch } from './0014-activity-search.ts';
import { ConsoleLists } from './0015-console-lists.ts';
import { DeliveriesSeen } from './0016-deliveries-seen.ts';
import { ActivityTwoConditions } from './0017-activity-two-conditions.ts';
import { RetriesFirst } from './0018-retries-first.ts';
import { WorkflowSweep } from './0019-workflow-sweep.ts';
import { DeliveryRetention } from './0020-delivery-retention.ts';
import { ConsentAndDevices } from './0021-consent-and-devices.ts';

/**
 * Every migration, in order. A merged one is never edited; a new one is appended here and says
 * whether running pods survive it, which go on reading and writing beside it.
 *
 * Filled tables (`activity` above all, as every read adds a line to it; `event`, `delivery`,
 * `delivery_attempt`): nothing may hold their writers up for longer than a moment, and a read gives
 * up after 5 s. A lock that is not to be had at once is given up and tried for again by the
 * migrator; how long one is held is for the migration to see to:
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
  { name: '0003-families-and-seats', class: FamiliesAndSeats },
  { name: '0004-referrals-and-outcomes', class: ReferralsAndOutcomes },
  { name: '0005-keys-and-activity', class: KeysAndActivity },
  { name: '0006-rights', class: Rights },
  { name: '0007-webhooks', class: Webhooks },
  { name: '0008-ledger', class: Ledger },
  { name: '0009-redeliveries', class: Redeliveries },
  { name: '0010-verdicts-and-arrivals', class: VerdictsAndArrivals },
  { name: '0011-identity', class: Identity },
  { name: '0012-organization-deeds', class: OrganizationDeeds },
  { name: '0013-console-forms', class: ConsoleForms },
  { name: '0014-activity-search', class: ActivitySearch },
  { name: '0015-console-lists', class: ConsoleLists },
  { name: '0016-deliveries-seen', class: DeliveriesSeen },
  { name: '0017-activity-two-conditions', class: ActivityTwoConditions },
  { name: '0018-retries-first', class: RetriesFirst },
  { name: '0019-workflow-sweep', class: WorkflowSweep },
  { name: '0020-delivery-retention', class: DeliveryRetention },
  { name: '0021-consent-and-devices', class: ConsentAndDevices },
];

/** The migration that a database must have for this code to serve from it. */
export const currentMigration = '0021-consent-and-devices';
