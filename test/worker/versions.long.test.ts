/** Releases of the worker as versions of one Temporal deployment, on the real server. */
import type { ServerResponse } from 'node:http';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { workerEnvironment } from '#test/worker.ts';
import { createVersions } from '../../apps/worker/relay/versions.ts';
import { startChildWorker } from './child-worker.ts';

const timeout = 120_000;
const patient = { timeout: 40_000, interval: 100 };
const deploymentName = 'org-api-test';
const accept = (response: ServerResponse) => void response.writeHead(204).end();
const refuse = (response: ServerResponse) => void response.writeHead(503).end();

it(
  'deliveries that wait for a retry continue under the next release, and under the old one after a rollback',
  async () => {
    const { startVersion, receiver, makeEvents, expectVersions, expectAllDelivered, expectWaiting } = await setup();
    receiver.answer = refuse;
    const old = await startVersion('0.1.0-a');
    await makeEvents(5);
    await expectWaiting(5);
    await expectVersions(Array(5).fill('0.1.0-a'));

    const next = await startVersion('0.1.0-b');
    expect(await old.stop()).toBe(0);
    receiver.answer = accept;
    await expectAllDelivered(5);
    await expectVersions(Array(5).fill('0.1.0-b'));

    receiver.answer = refuse;
    await makeEvents(5);
    await expectWaiting(5);
    await startVersion('0.1.0-a');
    expect(await next.stop()).toBe(0);
    receiver.answer = accept;
    await expectAllDelivered(10);
    await expectVersions([...Array(5).fill('0.1.0-a'), ...Array(5).fill('0.1.0-b')]);
  },
  timeout,
);

it(
  'a worker of an older version makes the first attempts of what it starts, and their next task runs on the current one',
  async () => {
    const { startVersion, receiver, makeEvents, expectVersions, expectAllDelivered } = await setup();
    const old = await startVersion('a');
    await makeEvents(3);
    await expectAllDelivered(3);
    const next = await startVersion('b');
    let made = 3;
    /**
     * Creates events until the old version has run some of them. Both relays claim, and the faster
     * one wins.
     */
    const untilOldClaims = async (count: number) => {
      const before = await claimedBy(old);
      do {
        await makeEvents(count);
        made += count;
        await vi.waitFor(async () => expect((await claimedBy(old)) + (await claimedBy(next))).toBe(made), patient);
      } while ((await claimedBy(old)) === before);
    };
    // The server (1.29) returns the first task with the start for any version, and the first
    // attempt is part of it.
    await untilOldClaims(5);
    await expectAllDelivered(made);
    const byOld = await claimedBy(old);
    expect(byOld + (await claimedBy(next))).toBe(made);
    await expectVersions([...Array(byOld).fill('a'), ...Array(made - byOld).fill('b')]);

    receiver.answer = refuse;
    await untilOldClaims(20);
    await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThanOrEqual(made), patient);
    receiver.answer = accept;
    await expectAllDelivered(made);
    await expectVersions([...Array(byOld).fill('a'), ...Array(made - byOld).fill('b')]);
  },
  timeout,
);

it(
  'a restart of an old pod during a rollout leaves nothing stuck: the new version takes over',
  async () => {
    const { startVersion, receiver, makeEvents, expectAllDelivered, expectWaiting, currentVersion, watch } =
      await setup();
    const old = await startVersion('a');
    await startVersion('b');
    await watch('b');
    expect(await currentVersion()).toBe('b');
    const restarted = await startVersion('a');
    expect(await currentVersion()).toBe('a');
    receiver.answer = refuse;
    await makeEvents(5);
    await expectWaiting(5);

    expect(await Promise.all([old.stop(), restarted.stop()])).toEqual([0, 0]);
    await makeEvents(5);
    receiver.answer = accept;

    await vi.waitFor(async () => expect(await currentVersion()).toBe('b'), patient);
    await expectAllDelivered(10);
  },
  timeout,
);

/**
 * A database with a webhook, a receiver, a new namespace (a current version applies to all workers
 * of its queues), and workers as processes.
 */
async function setup() {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url, eventTypes: ['client.started'] });
  const namespace = await makeNamespace('org-api-versions');
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const client = new Client({ connection, namespace });

  return {
    receiver,
    startVersion: (buildId: string) =>
      startChildWorker(
        workerEnvironment(database, {
          TEMPORAL_NAMESPACE: namespace,
          DELIVERY_SCHEDULE: Array(20).fill('3s').join(','),
          WORKER_DEPLOYMENT: deploymentName,
          ORG_API_BUILD_ID: buildId,
          WORKER_RAMP_STEP: '1s',
        }),
      ),
    async makeEvents(count: number) {
      for (let i = 0; i < count; i += 1) await make.grant({ professional });
    },
    /**
     * Returns the versions that last ran the deliveries' workflows, in any order. An attempt is
     * recorded a moment before its workflow's task ends, so this waits.
     */
    async expectVersions(versions: readonly string[]): Promise<void> {
      const { rows } = await owner.pool.query<{ id: string }>(
        `select 'delivery/' || webhook_id || '/' || event_id as id from delivery`,
      );
      await vi.waitFor(async () => {
        const found = await Promise.all(
          rows.map(async ({ id }) => {
            const { raw } = await client.workflow.getHandle(id).describe();
            return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
          }),
        );
        expect(found.sort()).toEqual([...versions].sort());
      }, patient);
    },
    async currentVersion(): Promise<string | null | undefined> {
      const { workerDeploymentInfo } = await client.workflowService.describeWorkerDeployment({
        namespace,
        deploymentName,
      });
      return workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId;
    },
    /**
     * Monitors a version as its pods do, with a shorter wait before another version counts as gone.
     */
    async watch(buildId: string): Promise<void> {
      const native = await NativeConnection.connect({ address: inject('temporalAddress') });
      const versions = createVersions({
        service: native.workflowService,
        namespace,
        version: { deploymentName, buildId },
        taskQueue: 'deliver',
        checkEveryMs: 200,
        goneAfterMs: 4_000,
        rampStepMs: 1_000,
        countTasks: async () => ({ completed: 0, failed: 0 }),
        onError: () => {},
      });
      onTestFinished(async () => {
        await versions.stop();
        await native.close();
      });
      await versions.start();
    },
    async expectWaiting(count: number): Promise<void> {
      await vi.waitFor(async () => {
        const { rows } = await owner.pool.query(
          `select count(*)::int as waiting from delivery where state = 'waiting' and attempts > 0`,
        );
        expect(rows).toEqual([{ waiting: count }]);
      }, patient);
    },
    /** Every event arrived, accepted exactly once, and the ledger balances. */
    async expectAllDelivered(count: number): Promise<void> {
      await vi.waitFor(async () => {
        expect(await readLedger(owner.pool)).toMatchObject({ obligations: count, delivered: count, difference: 0 });
      }, patient);
      const { rows } = await owner.pool.query(
        `select count(*)::int as accepted, count(distinct event_id)::int as events from delivery_attempt
          where cause = 'accepted'`,
      );
      expect(rows).toEqual([{ accepted: count, events: count }]);
    },
  };
}

async function claimedBy({ metricsUrl }: { metricsUrl: string }): Promise<number> {
  const page = await (await fetch(`${metricsUrl}/metrics`)).text();
  return Number(/^org_api_deliveries_claimed_total (\d+)/m.exec(page)?.[1]);
}
