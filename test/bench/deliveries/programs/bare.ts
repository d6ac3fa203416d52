/**
 * The process of the bare sides: a Temporal worker, and a client on its connection that starts
 * workflows eagerly. It has no database, records nothing and signs nothing. Its posts have the
 * length and the headers of org-api's, from memory, and it keeps its connections to the receiver.
 * Its parent requests deliveries over IPC.
 */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { activityInfo } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { otherWorkflowTasks } from '#delivery/temporal.ts';
import { machineMs } from '../clock.ts';
import type * as workflows from './bare-workflow.ts';
import type { BareInput } from './bare-workflow.ts';

export interface BareSettings {
  address: string;
  namespace: string;
  /** URL to post to. */
  url: string;
  /** Concurrent attempts, as for org-api. */
  slots: number;
}

/** The workflow of a bare side. */
export type BareWorkflow = Extract<keyof typeof workflows, string>;

/**
 * `underWay` deliveries at once, each replaced when its post is answered; or one at a time at a
 * steady rate.
 */
export type BareRequest = { workflow: BareWorkflow; deliveries: number } & (
  | { underWay: number }
  | { perSecond: number }
);

/**
 * The time of each request ({@link machineMs}), the number of eager starts, the number of repeated
 * activities (a local one is repeated with its workflow's task), and the time from the first start
 * to the last response.
 */
export type BareMessage =
  | { ready: true }
  | { startedAtMs: [eventId: string, atMs: number][]; eager: number; retried: number; ms: number };

const taskQueue = 'bare';
const settings = JSON.parse(process.argv[2] ?? '{}') as BareSettings;
const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
const answered = new Map<string, () => void>();
const begun = new Set<string>();
let retried = 0;

/** A delivery of org-api, except for the event's id. */
const formatBody = (eventId: string) =>
  `{"id":"${eventId}","type":"client.started","createdAt":"2026-01-01T00:00:00.000Z","organization":{"id":"0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d"},"data":{"grantId":"7f3c2f0e-6a1b-4d0e-8f57-2b9a4c1d5e6f","kind":"attorney"}}`;
const constantHeaders = {
  'Service-Signature': `t=1767225600,v1=${'0'.repeat(64)}`,
  'webhook-timestamp': '1767225600',
  'webhook-signature': `v1,${'A'.repeat(43)}=`,
  'Content-Type': 'application/json',
  'User-Agent': 'org-api-webhooks/1.0',
  'webhook-attempt': '1',
  'webhook-sequence': '100000',
};

function post(eventId: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(formatBody(eventId));
    const headers = { ...constantHeaders, 'webhook-id': eventId, 'content-length': String(body.length) };
    const sent = request(settings.url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

Runtime.install({ logger: new DefaultLogger('ERROR') });
const connection = await NativeConnection.connect({ address: settings.address });
const client = new Client({ connection, namespace: settings.namespace });
const worker = await Worker.create({
  connection,
  namespace: settings.namespace,
  taskQueue,
  workflowBundle: await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./bare-workflow.ts', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  }),
  activities: {
    async post({ eventId }: BareInput): Promise<void> {
      if (activityInfo().attempt > 1 || begun.has(eventId)) retried += 1;
      begun.add(eventId);
      await post(eventId);
      answered.get(eventId)?.();
    },
  },
  maxConcurrentActivityTaskExecutions: settings.slots,
  maxConcurrentLocalActivityExecutions: settings.slots,
  maxConcurrentWorkflowTaskExecutions: settings.slots + otherWorkflowTasks,
  maxCachedWorkflows: 2_000,
});

/** Starts a delivery and waits until its post is answered. */
async function deliver(workflow: BareWorkflow, startedAtMs: [string, number][]): Promise<boolean> {
  const eventId = randomUUID();
  const end = new Promise<void>((resolve) => answered.set(eventId, resolve));
  startedAtMs.push([eventId, machineMs()]);
  const [handle] = await Promise.all([
    client.workflow.start(workflow, {
      taskQueue,
      workflowId: `bare/${eventId}`,
      args: [{ eventId }],
      requestEagerStart: true,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    }),
    end,
  ]);
  answered.delete(eventId);
  return handle.eagerlyStarted;
}

async function run(requested: BareRequest): Promise<BareMessage> {
  const startedAtMs: [string, number][] = [];
  const startedAt = performance.now();
  let eager = 0;
  retried = 0;
  begun.clear();
  const one = async () => {
    if (await deliver(requested.workflow, startedAtMs)) eager += 1;
  };
  if ('underWay' in requested) {
    let left = requested.deliveries;
    const line = async () => {
      while (left > 0) {
        left -= 1;
        await one();
      }
    };
    await Promise.all(Array.from({ length: requested.underWay }, line));
  } else {
    const running: Promise<void>[] = [];
    for (let index = 0; index < requested.deliveries; index += 1) {
      const dueInMs = startedAt + (index * 1000) / requested.perSecond - performance.now();
      if (dueInMs > 0) await wait(dueInMs);
      running.push(one());
    }
    await Promise.all(running);
  }
  return { startedAtMs, eager, retried, ms: performance.now() - startedAt };
}

process.on('message', (requested: BareRequest) => {
  run(requested).then(
    (message) => process.send?.(message),
    (error: unknown) => {
      console.error('the bare side failed:', error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true } satisfies BareMessage);
await worker.run(); // until SIGTERM
process.exit(0);
