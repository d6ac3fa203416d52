import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { type SealingKeys, seal, unseal } from '#domain/encryption/envelope.ts';
import { providerRow } from '#domain/identity/sso-provider.ts';
import { enrolmentRow, generateTotpSecret, sealTotp, unsealTotp } from '#domain/identity/totp.ts';
import { mailRow } from '#domain/mail/seal.ts';
import { sealHeaders, sealSecret, unsealHeaders } from '#domain/webhooks/seal.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import type { Factories, MadeWebhook } from './make.ts';
import { testSealingKeys, testWebhookSecretKeys } from './secrets.ts';

const newerSecret = randomBytes(32);
/** The sealing key of the tests, version 1, and a newer one before it. */
export const rotatedSealingKeys: SealingKeys = [{ version: 2, secret: newerSecret }, ...testSealingKeys];
/** Only the newer key, as after the old one was removed. */
export const newerSealingKeys: SealingKeys = [{ version: 2, secret: newerSecret }];
/** The same, as an app reads them from its environment. */
export const newerWebhookSecretKeys = `2:${newerSecret.toString('base64')}`;
export const rotatedWebhookSecretKeys = `${newerWebhookSecretKeys},${testWebhookSecretKeys}`;

/**
 * Ids of one person's sealed rows: an app in use, one being added in a session, one chosen at a
 * link, the mail of that link, and of their organization the provider and a webhook without a
 * signing secret, with a custom header. `secret` is the secret of all six.
 */
export interface MadeApps {
  orgId: string;
  personId: string;
  factorId: string;
  sessionId: string;
  mailId: string;
  providerId: string;
  webhookId: string;
  secret: string;
}

/** Inserts one sealed row of each kind that people have, sealed by the first of `keys`. */
export async function insertApps(pool: Pool, make: Factories, keys: SealingKeys = testSealingKeys): Promise<MadeApps> {
  const { orgId, userId: personId } = await make.member();
  const [factorId, sessionId, mailId] = [randomUUID(), randomUUID(), randomUUID()];
  const [providerId, webhookId] = [randomUUID(), randomUUID()];
  const secret = generateTotpSecret();
  const sealed = (row: string) => sealTotp(secret, row, keys);
  await pool.query(
    `insert into sign_in (person_id, email, password_hash, password_changed_at, created_at)
      values ($1, $1 || '@example.org', '$argon2id$none', now(), now())`,
    [personId],
  );
  await pool.query(
    `insert into second_factor (id, person_id, kind, name, created_at, totp_sealed, totp_last_step)
      values ($1, $2, 'totp', 'App', now(), $3, 0)`,
    [factorId, personId, sealed(factorId)],
  );
  await pool.query(
    `insert into console_session (id, token_hash, person_id, state, created_at, last_seen_at, expires_at, user_agent)
     values ($1, $2, $3, 'password_passed', now(), now(), now() + interval '1 hour', '')`,
    [sessionId, randomBytes(32), personId],
  );
  await pool.query(
    `insert into challenge (session_id, purpose, expires_at, challenge, totp_sealed)
     values ($1, 'totp_setup', now() + interval '10 minutes', null, $2), ($1, 'passkey_setup',
       now() + interval '10 minutes', 'c', null)`,
    [sessionId, sealed(sessionId)],
  );
  await pool.query(
    `insert into enrolment (organization_id, person_id, token_hash, kind, email, created_at, expires_at, totp_sealed)
     values ($1, $2, $3, 'invite', $2 || '@example.org', now(), now() + interval '1 hour', $4)`,
    [orgId, personId, randomBytes(32), sealed(enrolmentRow({ organizationId: orgId, personId }))],
  );
  await pool.query(
    `insert into mail (id, organization_id, kind, person_id, address, sealed)
     values ($1, $2, 'invitation', $3, $3 || '@example.org', $4)`,
    [mailId, orgId, personId, seal(secret, mailRow(mailId), keys)],
  );
  await pool.query(
    `insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     values ($1, $2, 'https://login.example.com', 'console', $3, false, now())`,
    [providerId, orgId, seal(secret, providerRow(providerId), keys)],
  );
  await pool.query(
    `insert into webhook (organization_id, id, url, event_types, number, header_names, headers_sealed)
     values ($1, $2, 'https://hooks.example.com/', '{client.ended}', 1, '{X-Key}', $3)`,
    [orgId, webhookId, sealHeaders([{ name: 'X-Key', value: secret }], { organizationId: orgId, webhookId }, keys)],
  );
  return { orgId, personId, factorId, sessionId, mailId, providerId, webhookId, secret };
}

/** Unseals a person's six rows with `keys`: factor, challenge, enrolment, mail, provider, webhook. */
export async function openApps(pool: Pool, made: MadeApps, keys: SealingKeys): Promise<string[]> {
  const { orgId, personId, factorId, sessionId, mailId, providerId, webhookId } = made;
  type Kind = 'factor' | 'challenge' | 'enrolment' | 'mail' | 'provider' | 'headers';
  const { rows } = await pool.query<Record<Kind, Buffer>>(
    `select f.totp_sealed as factor, c.totp_sealed as challenge, e.totp_sealed as enrolment, m.sealed as mail,
       p.secret_sealed as provider, w.headers_sealed as headers
     from second_factor f, challenge c, enrolment e, mail m, sso_provider p, webhook w
     where f.id = $1 and c.session_id = $2 and c.purpose = 'totp_setup' and e.organization_id = $3
       and e.person_id = $4 and m.id = $5 and p.id = $6 and w.id = $7`,
    [factorId, sessionId, orgId, personId, mailId, providerId, webhookId],
  );
  return rows.flatMap((row) => [
    unsealTotp(row.factor, factorId, keys),
    unsealTotp(row.challenge, sessionId, keys),
    unsealTotp(row.enrolment, enrolmentRow({ organizationId: orgId, personId }), keys),
    unseal(row.mail, mailRow(mailId), keys),
    unseal(row.provider, providerRow(providerId), keys),
    ...unsealHeaders(row.headers, { organizationId: orgId, webhookId }, keys).map(({ value }) => value),
  ]);
}

/**
 * Inserts rotated secrets of a webhook that still sign, enough for several pages. Returns their
 * values.
 */
export async function insertOldSecrets(pool: Pool, webhook: MadeWebhook, count: number): Promise<string[]> {
  const secrets = Array.from({ length: count }, generateSecret);
  const owner = { organizationId: webhook.orgId, webhookId: webhook.id };
  await pool.query(
    `insert into webhook_secret (organization_id, webhook_id, sealed, valid_until)
     select $1, $2, s, now() + interval '5 days' from unnest($3::bytea[]) s`,
    [webhook.orgId, webhook.id, secrets.map((secret) => sealSecret(secret, owner, testSealingKeys))],
  );
  return secrets;
}
