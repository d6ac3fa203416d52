import { enrolmentRow, resealTotp, unsealTotp } from '../identity/totp.ts';
import type { SealingKeys } from '../seal/envelope.ts';
import { resealSecret, unsealSecret } from '../webhooks/seal.ts';

/** The tables with a column that the keys of WEBHOOK_SECRET_KEYS seal. */
export type SealedTable = 'webhook_secret' | 'second_factor' | 'factor_challenge' | 'enrolment';

/** The ids of a sealed row, for programs and people. */
export type SealedIds = Readonly<Record<string, string>>;

/** One such column, and how its texts are bound to their rows. */
export interface SealedKind<Ids extends SealedIds = SealedIds> {
  table: SealedTable;
  column: string;
  /** The column of each id. */
  ids: Readonly<Record<keyof Ids & string, string>>;
  /** The ids that are unique together and have an index, in its order. */
  key: readonly (keyof Ids & string)[];
  /** SQL: whether a row may still be unsealed; others are only waiting to be deleted. */
  living: string;
  /** Throws UnsealError or SecretNotUnsealed, as `reseal` does. */
  open(ids: Ids, sealed: Buffer, keys: SealingKeys): string;
  /** Returns null when it is already sealed with the newest key. */
  reseal(ids: Ids, sealed: Buffer, keys: SealingKeys): Buffer | null;
}

const webhookSecrets: SealedKind<{ organizationId: string; webhookId: string; id: string }> = {
  table: 'webhook_secret',
  column: 'sealed',
  key: ['organizationId', 'webhookId', 'id'],
  ids: { organizationId: 'organization_id', webhookId: 'webhook_id', id: 'id' },
  living: '(valid_until is null or valid_until > now())',
  open: (owner, sealed, keys) => unsealSecret(sealed, owner, keys),
  reseal: (owner, sealed, keys) => resealSecret(sealed, owner, keys),
};

const authenticatorApps: SealedKind<{ id: string; personId: string }> = {
  table: 'second_factor',
  column: 'totp_sealed',
  key: ['id'],
  ids: { id: 'id', personId: 'person_id' },
  living: 'true',
  open: ({ id }, sealed, keys) => unsealTotp(sealed, id, keys),
  reseal: ({ id }, sealed, keys) => resealTotp(sealed, id, keys),
};

/**
 * Of a session's challenges only that of `totp_setup` has a secret, so the session identifies the
 * row.
 */
const appsBeingAdded: SealedKind<{ sessionId: string }> = {
  table: 'factor_challenge',
  column: 'totp_sealed',
  key: ['sessionId'],
  ids: { sessionId: 'session_id' },
  living: 'expires_at > now()',
  open: ({ sessionId }, sealed, keys) => unsealTotp(sealed, sessionId, keys),
  reseal: ({ sessionId }, sealed, keys) => resealTotp(sealed, sessionId, keys),
};

const appsOfEnrolments: SealedKind<{ organizationId: string; personId: string }> = {
  table: 'enrolment',
  column: 'totp_sealed',
  key: ['organizationId', 'personId'],
  ids: { organizationId: 'organization_id', personId: 'person_id' },
  living: 'expires_at > now()',
  open: (enrolment, sealed, keys) => unsealTotp(sealed, enrolmentRow(enrolment), keys),
  reseal: (enrolment, sealed, keys) => resealTotp(sealed, enrolmentRow(enrolment), keys),
};

/** All of them; a test compares the list with the schema. */
export const sealedKinds: readonly SealedKind[] = [webhookSecrets, authenticatorApps, appsBeingAdded, appsOfEnrolments];

/** SQL: the rows of a kind with a sealed text that may still be unsealed. */
export const isSealedSql = ({ column, living }: SealedKind): string => `${column} is not null and ${living}`;
