import { providerRow } from '../identity/sso-provider.ts';
import { enrolmentRow, totpRow } from '../identity/totp.ts';
import { mailRow } from '../mail/seal.ts';
import { headersRow, secretRow } from '../webhooks/seal.ts';

/** The tables with a column that the keys of WEBHOOK_SECRET_KEYS seal. */
export type SealedTable =
  | 'webhook_secret'
  | 'webhook'
  | 'second_factor'
  | 'challenge'
  | 'enrolment'
  | 'mail'
  | 'sso_provider';

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
  /** Names a row for its seal. */
  nameRow(ids: Ids): string;
}

const webhookSecrets: SealedKind<{ organizationId: string; webhookId: string; id: string }> = {
  table: 'webhook_secret',
  column: 'sealed',
  key: ['organizationId', 'webhookId', 'id'],
  ids: { organizationId: 'organization_id', webhookId: 'webhook_id', id: 'id' },
  living: '(valid_until is null or valid_until > now())',
  nameRow: secretRow,
};

const customHeaders: SealedKind<{ organizationId: string; webhookId: string }> = {
  table: 'webhook',
  column: 'headers_sealed',
  key: ['organizationId', 'webhookId'],
  ids: { organizationId: 'organization_id', webhookId: 'id' },
  living: 'true',
  nameRow: headersRow,
};

const authenticatorApps: SealedKind<{ id: string; personId: string }> = {
  table: 'second_factor',
  column: 'totp_sealed',
  key: ['id'],
  ids: { id: 'id', personId: 'person_id' },
  living: 'true',
  nameRow: ({ id }) => totpRow(id),
};

/** A session's one challenge with a secret is `totp_setup`, so the session identifies the row. */
const appsBeingAdded: SealedKind<{ sessionId: string }> = {
  table: 'challenge',
  column: 'totp_sealed',
  key: ['sessionId'],
  ids: { sessionId: 'session_id' },
  living: 'expires_at > now()',
  nameRow: ({ sessionId }) => totpRow(sessionId),
};

const enrolmentApps: SealedKind<{ organizationId: string; personId: string }> = {
  table: 'enrolment',
  column: 'totp_sealed',
  key: ['organizationId', 'personId'],
  ids: { organizationId: 'organization_id', personId: 'person_id' },
  living: 'expires_at > now()',
  nameRow: (ids) => totpRow(enrolmentRow(ids)),
};

/** The token of an invitation, until its mail is settled. */
const invitationTokens: SealedKind<{ id: string }> = {
  table: 'mail',
  column: 'sealed',
  key: ['id'],
  ids: { id: 'id' },
  living: 'true',
  nameRow: ({ id }) => mailRow(id),
};

const providerSecrets: SealedKind<{ id: string; organizationId: string }> = {
  table: 'sso_provider',
  column: 'secret_sealed',
  key: ['id'],
  ids: { id: 'id', organizationId: 'organization_id' },
  living: 'true',
  nameRow: ({ id }) => providerRow(id),
};

/** All of them; a test compares the list with the schema. */
export const sealedKinds: readonly SealedKind[] = [
  webhookSecrets,
  customHeaders,
  authenticatorApps,
  appsBeingAdded,
  enrolmentApps,
  invitationTokens,
  providerSecrets,
];

/** SQL: the rows of a kind with a sealed text that may still be unsealed. */
export const isSealedSql = ({ column, living }: SealedKind): string => `${column} is not null and ${living}`;
