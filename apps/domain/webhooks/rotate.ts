import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { askerOf } from '../access/authority.ts';
import { recordActivity } from '../activity/record.ts';
import { runStatement, sql } from '../db/statement.ts';
import { lockLivingWebhook, type WebhookRequest } from './access.ts';
import { secretOverlapDefaultSeconds, secretOverlapMaxDays, signingSecretsAtMost } from './limits.ts';
import { WebhookRefused } from './refused.ts';
import { type SealingKeys, sealSecret } from './seal.ts';
import { generateSecret } from './secret.ts';

export interface RotateSecret extends WebhookRequest {
  /**
   * How long the secrets of now go on signing beside the new one, 0 to 7 days; 24 hours when left
   * out.
   */
  overlapSeconds?: number;
}

/**
 * The new signing secret: show it once, store it nowhere. From `previousValidUntil` on (UTC) it
 * signs alone.
 */
export interface RotatedSecret {
  id: string;
  secret: string;
  previousValidUntil: string;
}

/**
 * Gives a webhook a new signing secret, in one transaction with its activity line. During the
 * overlap every post carries a signature of each, newest first.
 *
 * No older secret outlives the one that is replaced now: an overlap of 0 leaves the new one alone,
 * and erases all others at once. The clock is the database's, as for the attempts that sign.
 *
 * @throws WebhookRefused when the caller may not, the webhook is deleted, the overlap is not within
 * 0 to 7 days, or five secrets would not be the most.
 */
export async function rotateSecret(
  em: EntityManager,
  input: RotateSecret,
  sealingKeys: SealingKeys,
): Promise<RotatedSecret> {
  const { organizationId, webhookId, by, overlapSeconds = secretOverlapDefaultSeconds } = input;
  return em.fork().transactional(async (tx) => {
    await lockLivingWebhook(tx, input);
    assertOverlap(overlapSeconds);
    const previousValidUntil = await endOlderSecrets(tx, input, overlapSeconds);
    const id = randomUUIDv7();
    const secret = generateSecret();
    const sealed = sealSecret(secret, { organizationId, webhookId }, sealingKeys);
    await runStatement(
      tx,
      sql`
      insert into webhook_secret (organization_id, webhook_id, id, sealed, created_at)
      values (${organizationId}, ${webhookId}, ${id}, ${sealed}, clock_timestamp())`,
    );
    // Whether the receiver verifies with the new one is not known.
    await runStatement(
      tx,
      sql`
      update webhook set signature_verdict = null, signature_checked_at = null
      where organization_id = ${organizationId} and id = ${webhookId} and signature_verdict is not null`,
    );
    await recordActivity(tx, {
      organizationId,
      ...askerOf(by),
      action: 'webhook.rotate_secret',
      detail: { webhookId, secretId: id, overlapSeconds },
    });
    return { id: webhookId, secret, previousValidUntil };
  });
}

function assertOverlap(overlapSeconds: number): void {
  if (overlapSeconds >= 0 && overlapSeconds <= secretOverlapMaxDays * 86_400) return;
  throw new WebhookRefused('overlap_out_of_range', `Both secrets can sign for 0 to ${secretOverlapMaxDays} days.`);
}

async function endOlderSecrets(tx: EntityManager, request: WebhookRequest, overlapSeconds: number): Promise<string> {
  const { organizationId, webhookId } = request;
  const rows = await runStatement<{ endsAt: string; isKept: boolean }>(
    tx,
    sql`
    update webhook_secret
    set valid_until = least(valid_until, clock_timestamp() + make_interval(secs => ${overlapSeconds}::double precision))
    where organization_id = ${organizationId} and webhook_id = ${webhookId}
    returning api.utc(valid_until) as "endsAt", valid_until > clock_timestamp() as "isKept"`,
  );
  const kept = rows.filter(({ isKept }) => isKept);
  if (kept.length >= signingSecretsAtMost) {
    throw new WebhookRefused(
      'too_many_secrets',
      `${kept.length} secrets of this webhook sign already; rotate without an overlap, or wait until one has ended.`,
    );
  }
  await runStatement(
    tx,
    sql`
    delete from webhook_secret
    where organization_id = ${organizationId} and webhook_id = ${webhookId} and valid_until <= clock_timestamp()`,
  );
  return rows.map(({ endsAt }) => endsAt).reduce((latest, at) => (at > latest ? at : latest), '');
}
