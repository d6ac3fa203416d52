/** What an operator does with a Region when a part of it is lost, rejected or cannot be used. */
import { CoordinationV1Api } from '@kubernetes/client-node';
import { describe, expect, it, vi } from 'vitest';
import { rotatedWebhookSecretKeys } from '#test/sealed-rows.ts';
import { leaseName } from '../../apps/operator/kube/lease.ts';
import { setupRegion, waiting, webhooks } from './setup-region.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

/** What a page of metrics shows of WEBHOOK_SECRET_KEYS. */
function readKeysIn(page: string) {
  const find = (name: string) =>
    new RegExp(`^org_api_setting_${name}\\{setting="WEBHOOK_SECRET_KEYS"\\} (\\S+)$`, 'm').exec(page)?.[1];
  return { isRejected: find('rejected') === '1', isRead: find('read_timestamp_seconds') !== undefined };
}

describe('the operator', () => {
  it('shows when it read a Secret, and that it rejects one, only while it leads', async () => {
    let passedMs = 0;
    const t = await setupRegion(server(), { now: () => performance.now() + passedMs });
    const leases = server().kubeConfig.makeApiClient(CoordinationV1Api);
    const lease = { namespace: t.namespace, name: leaseName };
    const setHolder = (holderIdentity: string) =>
      vi.waitFor(async () => {
        const body = await leases.readNamespacedLease(lease);
        await leases.replaceNamespacedLease({ ...lease, body: { ...body, spec: { ...body.spec, holderIdentity } } });
      }, waiting);
    const expectKeys = (expected: ReturnType<typeof readKeysIn>) =>
      vi.waitFor(async () => expect(readKeysIn(await t.readMetrics())).toEqual(expected), waiting);

    await expectKeys({ isRead: false, isRejected: false });
    await t.applySecret();
    await t.applyRegion({}, { webhooks });
    await expectKeys({ isRead: true, isRejected: false });
    await t.applySecret({ WEBHOOK_SECRET_KEYS: 'unusable' });
    passedMs = 300_000;
    await t.applyRegion({}, { webhooks, delivery: { state: 'Running' } });
    await expectKeys({ isRead: true, isRejected: true });

    await setHolder('other');
    await expectKeys({ isRead: false, isRejected: false });
    await t.applySecret();
    await setHolder('');
    await expectKeys({ isRead: true, isRejected: false });

    await t.applyRegion();
    await expectKeys({ isRead: false, isRejected: false });
  });

  it('says that migrations are missing when PostgreSQL lacks a column of this version', async () => {
    const t = await setupRegion(server());
    const owner = await t.openOwner();
    await owner.query('alter table migration_failure rename column names to former_names');
    await t.applySecret();
    await t.applyRegion();

    await vi.waitFor(async () => expect(await t.readCondition('SchemaCurrent')).toBe('False NotMigrated'), waiting);
  });

  it('shows each action that fails in its own condition, and still carries out the others', async () => {
    const t = await setupRegion(server());
    const owner = await t.openOwner();
    await t.make.webhook();
    const last = 'length(sealed) - 1';
    await owner.query(`update webhook_secret set sealed = set_byte(sealed, ${last}, 255 - get_byte(sealed, ${last}))`);
    await owner.query(
      `create function reject() returns trigger language plpgsql as 'begin raise exception using errcode = 42501; end'`,
    );
    await owner.query('create trigger reject before update on delivery_switch for each row execute function reject()');
    await t.applySecret({ DATABASE_URL: t.database.ownerUrl, WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys });
    const databaseSecretRef = { name: 'org-api' };
    await t.applyRegion(
      { namespace: `org-api-test-${crypto.randomUUID()}`, retention: '48h' },
      { webhooks, sealing: { resealWith: 2, databaseSecretRef }, delivery: { state: 'Paused' } },
    );

    await vi.waitFor(async () => expect(await t.readCondition('KeysFresh')).toBe('False SecretNotUnsealed'), waiting);
    await vi.waitFor(async () => expect(await t.readCondition('TemporalReady')).toBe('True NamespaceAnswers'), waiting);
    expect(await t.readCondition('KeysFresh')).toBe('False SecretNotUnsealed');
    expect(await t.readCondition('Delivering')).toBe('True InternalError');
  });

  it('deletes a webhook although the Region names no sealing keys', async () => {
    const t = await setupRegion(server());
    const organizationId = await t.make.organization();
    const allowedOrganizations = [organizationId];
    await t.applySecret();
    await t.applyRegion({}, { webhooks, allowedOrganizations });
    await t.declare(organizationId, { reclaimPolicy: 'delete' });
    await vi.waitFor(async () => expect(await t.readReadiness()).toBe('Applied'), waiting);
    await t.applyRegion({}, { allowedOrganizations });
    await vi.waitFor(async () => expect(await t.readReadiness()).toBe('NoSecretKeys'), waiting);

    await t.removeSubscription();

    await expect.poll(() => t.readReadiness().catch((cause: { code: number }) => cause.code), waiting).toBe(404);
    const owner = await t.openOwner();
    expect((await owner.query('select state from webhook')).rows).toEqual([{ state: 'deleted' }]);
  });
});
