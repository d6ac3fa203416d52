import { deleteWebhook, pauseWebhook, redeliverOne, resumeWebhook } from '#delivery/requests.ts';
import type { Authority } from '#domain/access/authority.ts';
import { type ChangeWebhook, changeWebhook } from '#domain/webhooks/change.ts';
import { type CreateWebhook, createWebhook } from '#domain/webhooks/create.ts';
import type { ShownState } from '#domain/webhooks/deliveries.ts';
import { getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { getWebhookWithSecrets, listWebhooks } from '#domain/webhooks/list.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { listDeliveries } from '#domain/webhooks/search-deliveries.ts';
import { completeCounts } from '#domain/webhooks/summary.ts';
import { testAllowList, testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';

export const daySeconds = 86_400;

/**
 * An organization with a member who may manage webhooks and nothing else, and every change of a
 * webhook as that member requests it.
 */
export async function setupWebhooks() {
  const { database, owner, make } = await setupDatabase();
  const db = owner;
  const manager = await make.member({ permissions: ['org.webhooks.manage'], signedIn: true });
  const organizationId = manager.orgId;
  const byManager: Authority = { personId: manager.userId };
  const of = (webhookId: string, by: Authority = byManager) => ({ organizationId, webhookId, by });
  const rows = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await owner.pool.query(text, values)).rows as Row[];

  return {
    database,
    owner,
    make,
    manager,
    organizationId,
    rows,
    of,
    create: (fields: Partial<CreateWebhook> = {}) =>
      createWebhook(
        db,
        {
          organizationId,
          by: byManager,
          url: 'https://hooks.example.com/in?token=t0psecret',
          description: 'ours',
          eventTypes: ['client.started'],
          allowSameUrl: true,
          ...fields,
        },
        { allow: testAllowList, sealingKeys: testSealingKeys },
      ),
    change: (webhookId: string, fields: Partial<ChangeWebhook>) =>
      changeWebhook(db, { ...of(webhookId), ...fields }, testAllowList),
    rotate: (webhookId: string, overlapSeconds?: number, by?: Authority) =>
      rotateSecret(
        db,
        { ...of(webhookId, by), ...(overlapSeconds === undefined ? {} : { overlapSeconds }) },
        testSealingKeys,
      ),
    pause: (webhookId: string, by?: Authority) => pauseWebhook(db, of(webhookId, by)),
    resume: (webhookId: string, by?: Authority) => resumeWebhook(db, of(webhookId, by)),
    remove: (webhookId: string, by?: Authority) => deleteWebhook(db, of(webhookId, by)),
    list: (by: Authority = byManager) => listWebhooks(db, { organizationId, by }, completeCounts(new Date())),
    show: (webhookId: string, by?: Authority) =>
      getWebhookWithSecrets(db, of(webhookId, by), completeCounts(new Date())),
    deliveries: (webhookId: string, state: ShownState | null = null, by?: Authority) =>
      listDeliveries(db, of(webhookId, by), state, { before: null, atMost: 100 }),
    delivery: async (webhookId: string, eventId: string, by?: Authority) => {
      const page = { before: null, atMost: null, withResponses: true };
      const delivery = await getDeliveryDetail(db, { ...of(webhookId, by), eventId }, page);
      const attempts = delivery.newestAttempts.map((one) => ({
        ...one,
        response: one.response?.toString('utf8') ?? null,
      }));
      return { ...delivery, attempts: attempts.reverse() };
    },
    redeliver: (webhookId: string, eventId: string, by?: Authority) =>
      redeliverOne(db, { ...of(webhookId, by), eventId }),
    /** The audit log, oldest first. */
    entries: () =>
      rows<{ action: string; person_id: string | null; detail: Record<string, unknown> }>(
        'select action, person_id, detail from audit_entry order by at, id',
      ),
    /** The columns of a delivery that a state change writes. */
    readState: async (eventId: string) =>
      (
        await rows<Record<string, unknown>>(
          `select state, run, failures, due_at <= now() as due, settled_at is not null as settled
           from delivery where event_id = $1`,
          [eventId],
        )
      )[0],
  };
}

/**
 * A webhook of another organization, or an unknown id: no function may find it for this
 * organization.
 */
export const nowhere = '00000000-0000-7000-8000-000000000000';
