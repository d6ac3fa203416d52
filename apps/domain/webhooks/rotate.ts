import { randomUUIDv7 } from 'node:crypto';
import type { Database, Transaction } from '../db/database.ts';
import { findDatabaseTime } from '../db/statement.ts';
import { lockLivingWebhook, recordWebhookEntry, type WebhookRequest } from './access.ts';
import { WebhookError } from './errors.ts';
import { assertSecret } from './fields.ts';
import { secretOverlapDefaultSeconds, secretOverlapMaxDays, signingSecretsAtMost } from './limits.ts';
import { type SealingKeys, sealSecret } from './seal.ts';
import { generateSecret } from './secret.ts';
import { WebhookSecret } from './webhook.entity.ts';

interface RotateSecret extends WebhookRequest {
  /** How long the current secrets sign beside the new one: 0 to 7 days, 24 hours by default. */
  overlapSeconds?: number;
  /** The next secret; a new one when it is left out. */
  secret?: string;
}

/** The new secret: show it once, store it nowhere. From `previousValidUntil` it signs alone. */
interface RotatedSecret {
  id: string;
  secret: string;
  previousValidUntil: string;
}

/**
 * Rotates the signing secret of a webhook, in one transaction with its audit entry. During the
 * overlap every post has a signature of each, newest first.
 *
 * No older secret outlives the one that is replaced: an overlap of 0 leaves the new one alone and
 * erases all others. The clock is the database's, as for the attempts that sign.
 *
 * @throws WebhookError when the caller may not, the webhook is deleted, the overlap is not within
 * 0 to 7 days, the secret is malformed, or more than five secrets would sign.
 */
export async function rotateSecret(
  database: Database,
  input: RotateSecret,
  sealingKeys: SealingKeys,
): Promise<RotatedSecret> {
  const { organizationId, webhookId, overlapSeconds = secretOverlapDefaultSeconds } = input;
  const { secret = generateSecret() } = input;
  return database.change(async (tx) => {
    const webhook = await lockLivingWebhook(tx, input);
    if (!(overlapSeconds >= 0 && overlapSeconds <= secretOverlapMaxDays * 86_400))
      throw new WebhookError('overlap_out_of_range', `Both secrets can sign for 0 to ${secretOverlapMaxDays} days.`);
    assertSecret(secret);
    const now = await findDatabaseTime(tx);
    const previousValidUntil = await endOlderSecrets(tx, input, { now, overlapSeconds });
    const id = randomUUIDv7();
    const sealed = sealSecret(secret, { organizationId, webhookId }, sealingKeys);
    tx.create(WebhookSecret, { organizationId, webhookId, id, sealed, createdAt: now, validUntil: null });
    webhook.clearSignatureResult();
    await tx.flush();
    await recordWebhookEntry(tx, input, 'webhook.rotate_secret', { secretId: id, overlapSeconds });
    return { id: webhookId, secret, previousValidUntil };
  });
}

/** Ends the older secrets, erases those that end now, and returns when the last one ends. */
async function endOlderSecrets(
  tx: Transaction,
  { organizationId, webhookId }: WebhookRequest,
  { now, overlapSeconds }: { now: Date; overlapSeconds: number },
): Promise<string> {
  const secrets = await tx.find(WebhookSecret, { organizationId, webhookId });
  const ends = secrets.map((secret) => secret.endBy(new Date(now.getTime() + overlapSeconds * 1000)));
  const signing = secrets.filter(({ validUntil }) => validUntil !== null && validUntil > now);
  if (signing.length >= signingSecretsAtMost) {
    throw new WebhookError(
      'too_many_secrets',
      `${signing.length} secrets of this webhook sign already; rotate without an overlap, or wait until one has ended.`,
    );
  }
  for (const secret of secrets) if (!signing.includes(secret)) tx.remove(secret);
  await tx.flush(); // one secret at a time has no end
  return new Date(Math.max(...ends.map((end) => end.getTime()))).toISOString();
}
