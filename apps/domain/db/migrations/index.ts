import { RolesAndFunctions } from './0001-roles-and-functions.ts';
import { Organizations } from './0002-organizations.ts';
import { FamiliesAndSeats } from './0003-families-and-seats.ts';
import { ReferralsAndOutcomes } from './0004-referrals-and-outcomes.ts';
import { KeysAndActivity } from './0005-keys-and-activity.ts';
import { Rights } from './0006-rights.ts';
import { Webhooks } from './0007-webhooks.ts';
import { Ledger } from './0008-ledger.ts';

/** Every migration, in order. A merged one is never edited; a new one is appended here and says whether running pods survive it. */
export const migrations = [
  { name: '0001-roles-and-functions', class: RolesAndFunctions },
  { name: '0002-organizations', class: Organizations },
  { name: '0003-families-and-seats', class: FamiliesAndSeats },
  { name: '0004-referrals-and-outcomes', class: ReferralsAndOutcomes },
  { name: '0005-keys-and-activity', class: KeysAndActivity },
  { name: '0006-rights', class: Rights },
  { name: '0007-webhooks', class: Webhooks },
  { name: '0008-ledger', class: Ledger },
];

/** The migration that a database must have for this code to serve from it. */
export const currentMigration = '0008-ledger';
