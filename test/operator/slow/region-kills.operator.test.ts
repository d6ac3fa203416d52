/**
 * Operators that are killed with SIGKILL in and after the actions of a Region, and their
 * successors.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CustomObjectsApi } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createNamespace } from '#test/api-server.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { insertApps, newerSealingKeys, openApps, rotatedWebhookSecretKeys } from '#test/sealed-rows.ts';
import { setupDatabase } from '#test/setup.ts';
import { registerNamespace } from '#test/temporal.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { kinds, type Region } from '../../../apps/operator/kube/resources.ts';
import { regionIn } from '../region.ts';
import type { RegionKill } from '../region-child.ts';
import { shareApiServer } from '../share-api-server.ts';

const waiting = { timeout: 120_000, interval: 100 };
const child = path.join(import.meta.dirname, '../region-child.ts');

const server = shareApiServer();

const killed = new Set<string>();

describe('an operator that is killed', () => {
  it('after it held the deliveries is followed by one that leaves them held', async () => {
    const t = await setup();
    await t.applyRegion({ delivery: { state: 'Draining' } });
    await t.killAfter('setDeliverySwitch');
    const read = () => t.rows('select state, changed_at from delivery_switch');
    const before = await read();
    expect(before).toMatchObject([{ state: 'draining' }]);

    await t.runUntil('Delivering False Draining');
    expect(await read()).toEqual(before);
  });

  it('after it sealed the secrets again is followed by one that finds all sealed, and no secret is lost', async () => {
    const t = await setup({ WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys });
    const apps = await insertApps(t.owner.pool, t.make);
    await t.applyRegion({
      webhooks: { secretKeysRef: { name: 'org-api' } },
      sealing: { resealWith: 2, databaseSecretRef: { name: 'org-api' } },
    });
    await t.killAfter('resealSecrets');
    const read = () => t.rows('select sealed from webhook_secret order by id');
    const before = await read();

    await t.runUntil('KeysFresh True NewestKeySeals');
    expect(await read()).toEqual(before);
    expect(await openApps(t.owner.pool, apps, newerSealingKeys)).toEqual(Array(6).fill(apps.secret));
  });

  it.each([1, 2, 3, 4, 5, 6, 7])(
    'while it seals secret %i of 7 is followed by one that seals only the rest',
    async (count) => {
      const t = await setup({ WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys });
      const apps = await insertApps(t.owner.pool, t.make);
      await t.make.webhook();
      const read = async () => {
        const rows = await t.rows(
          `select sealed from webhook_secret union all select totp_sealed from second_factor
          union all select totp_sealed from enrolment
          union all select headers_sealed from webhook where headers_sealed is not null
          union all select sealed from mail union all select secret_sealed from sso_provider
          union all select totp_sealed from challenge where totp_sealed is not null`,
        );
        return (rows as { sealed: Buffer }[]).map(({ sealed }) => sealed.toString('base64'));
      };
      const countLeft = async (before: string[]) => {
        const now = await read();
        return before.filter((sealed) => now.includes(sealed)).length;
      };
      const original = await read();
      expect(original).toHaveLength(7);
      await t.applyRegion({
        webhooks: { secretKeysRef: { name: 'org-api' } },
        sealing: { resealWith: 2, databaseSecretRef: { name: 'org-api' } },
      });

      await t.kill({ atStatement: { text: 'sealed" = $1', count } });
      // PostgreSQL executes what it was sent.
      await vi.waitFor(async () => expect(await countLeft(original)).toBe(7 - count), waiting);
      const interrupted = await read();
      await t.runUntil('KeysFresh True NewestKeySeals');

      expect(await countLeft(interrupted)).toBe(count);
      expect(await countLeft(original)).toBe(0);
      expect(await openApps(t.owner.pool, apps, newerSealingKeys)).toEqual(Array(6).fill(apps.secret));
    },
  );

  it.each(['createNamespace', 'setRetention'])(
    'after %s is followed by one that sets up the rest of Temporal’s namespace',
    async (action) => {
      const t = await setup();
      const { workflowService } = t.temporal;
      const { temporalNamespace: namespace } = t;
      if (action === 'setRetention') {
        await registerNamespace(workflowService, namespace, '3 days');
      }
      await t.applyRegion({}, { retention: '48h' });
      await t.killAfter(action);

      await t.runUntil('TemporalReady True NamespaceAnswers');
      const { config } = await workflowService.describeNamespace({ namespace });
      expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(48 * 3_600);
    },
  );

  it('was killed above after every action of a Region', () => {
    const controller = path.join(import.meta.dirname, '../../../apps/operator/region/controller.ts');
    const [execute = ''] = readFileSync(controller, 'utf8').match(/async execute[\s\S]*?\n {4}\}/) ?? [];
    const actions = [...execute.matchAll(/case '(\w+)':/g)].map(([, name]) => name);
    expect(actions.length).toBeGreaterThan(3);
    expect([...killed].toSorted()).toEqual(actions.toSorted());
  });
});

/** A region's servers and its Secret, and operators in separate processes. */
async function setup(secrets: Record<string, string> = {}) {
  const namespace = await createNamespace(server());
  const { database, owner, make } = await setupDatabase();
  const temporalNamespace = `org-api-kills-${randomBytes(4).toString('hex')}`;
  const folder = temporaryFolder();
  const kubeconfig = path.join(folder, 'kubeconfig.json');
  writeFileSync(kubeconfig, server().operatorConfig.exportConfig());
  await server().apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator, DATABASE_URL: database.ownerUrl, ...secrets },
  });
  const temporal = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => temporal.close());
  const custom = server().kubeConfig.makeApiClient(CustomObjectsApi);
  const { group, version, plural } = kinds.Region;

  function spawnOperator(settings: Record<string, string> = {}) {
    const spawned = spawn(process.execPath, [child], {
      env: {
        ...childEnvironment,
        REGION: 'us',
        OPERATOR_NAMESPACE: namespace,
        OPERATOR_IDENTITY: 'test', // the next one need not wait for the Lease
        KUBECONFIG: kubeconfig,
        HOST: '127.0.0.1',
        METRICS_PORT: '0',
        ...settings,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    onTestFinished(() => void spawned.kill('SIGKILL'));
    return { process: spawned, ended: once(spawned, 'exit') };
  }

  const t = {
    owner,
    make,
    temporal,
    temporalNamespace,
    rows: async (text: string) => (await owner.pool.query(text)).rows as unknown[],
    applyRegion: (spec: object, temporalSpec: object = {}) =>
      server().apply(
        regionIn(namespace, {
          temporal: {
            address: inject('temporalAddress'),
            namespace: temporalNamespace,
            tls: false,
            ...temporalSpec,
          },
          ...spec,
        }),
      ),
    read: async () =>
      (await custom.getNamespacedCustomObject({ group, version, plural, namespace, name: 'region' })) as Region,
    /** Runs an operator until it is killed after this action. */
    async killAfter(action: string): Promise<void> {
      await t.kill({ afterAction: action });
      killed.add(action);
    },
    async kill(kill: RegionKill): Promise<void> {
      const [, signal] = await spawnOperator({ KILL: JSON.stringify(kill) }).ended;
      expect(signal).toBe('SIGKILL');
    },
    /**
     * Runs an operator until its status for the newest spec satisfies the condition, and stops it.
     */
    async runUntil(...expected: string[]): Promise<void> {
      const operator = spawnOperator();
      const startedAt = Date.now();
      await vi.waitFor(async () => {
        const { metadata, status } = await t.read();
        expect(status?.observedGeneration).toBe(metadata.generation);
        const found = status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason}`);
        expect(found).toEqual(expect.arrayContaining(expected));
        expect(Date.now() - startedAt).toBeGreaterThan(2_000); // not the status of the previous spec
      }, waiting);
      operator.process.kill('SIGTERM');
      await operator.ended;
    },
  };
  return t;
}
