/** Transitions of objects by the operator, for tests that interrupt it on the way. */
import { group, kinds } from '../../apps/operator/resources.ts';
import type { setupDeclared } from './declared.ts';

type Declared = Awaited<ReturnType<typeof setupDeclared>>;

export interface Transition {
  name: string;
  /** The actions of its plan, in order. */
  actions: string[];
  /**
   * Declares the initial state of the transition, and then the change; no operator runs afterwards.
   */
  prepare(t: Declared): Promise<void>;
  /** Whether the last effect of the transition has happened. */
  isReached(t: Declared): Promise<boolean>;
  /**
   * The actions that the activity log has afterwards, each once; rows of one moment have no order.
   */
  recorded: string[];
  /** The rows that the database has afterwards. */
  counts?: { webhooks: number; secrets: number; redeliveries: number };
}

const { version, plural } = kinds.DeliveryReplay;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
const replayOf = ({ namespace }: Declared) => ({ group, version, plural, namespace, name: 'outage' });
const readReplay = (t: Declared) => t.custom.getNamespacedCustomObject(replayOf(t)).catch(() => null);
const declareReplay = ({ namespace, server }: Declared, spec: object = {}) =>
  server.apply({
    apiVersion: `${group}/${version}`,
    kind: 'DeliveryReplay',
    metadata: { name: 'outage', namespace },
    spec: { subscription: 'orders', from: hoursAgo(9), to: hoursAgo(1), ...spec },
  });

/** Whether the status for the newest generation satisfies the condition. */
async function hasConditions(t: Declared, ...expected: string[]): Promise<boolean> {
  const { metadata, status } = await t.read();
  const found = status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason}`) ?? [];
  return status?.observedGeneration === metadata.generation && expected.every((one) => found.includes(one));
}

async function declareReady(t: Declared, spec: Record<string, unknown> = {}): Promise<void> {
  await t.declare('orders', spec);
  await t.runUntil(() => hasConditions(t, 'Ready True Applied'));
}

const isRequested = async (t: Declared) => (await readReplay(t))?.status?.id !== undefined;
const isReplayGone = async (t: Declared) => (await readReplay(t)) === null;
const isGone = async (t: Declared) => !(await t.exists());
const one = { webhooks: 1, secrets: 1, redeliveries: 0 };

/** Together they have every action of both kinds. */
export const transitions: Transition[] = [
  {
    name: 'a new webhook that is suspended',
    actions: ['addFinalizer', 'createWebhook', 'pauseWebhook', 'publishSecret'],
    prepare: (t) => t.declare('orders', { suspend: true }),
    isReached: (t) => hasConditions(t, 'Ready True Applied', 'Delivering False Paused'),
    recorded: ['webhook.create', 'webhook.pause'],
    counts: one,
  },
  {
    name: 'a change, a rotation and a resumption',
    actions: ['changeWebhook', 'rotateSecret', 'publishSecret', 'resumeWebhook'],
    async prepare(t) {
      await declareReady(t, { suspend: true });
      const text = `update webhook_secret set created_at = created_at - interval '2 hours' where organization_id = $1`;
      await t.rows(text, [t.orgId]);
      const secret = { generate: { secretName: 'orders' }, rotation: { every: '1h', overlap: '10m' } };
      await t.declare('orders', { url: 'https://other.example.com/', secret });
    },
    isReached: (t) => hasConditions(t, 'Ready True Applied', 'Delivering True Active'),
    recorded: ['webhook.create', 'webhook.pause', 'webhook.change', 'webhook.rotate_secret', 'webhook.resume'],
    counts: { ...one, secrets: 2 },
  },
  {
    name: 'a deletion with the webhook',
    actions: ['deleteWebhook', 'removeFinalizer'],
    async prepare(t) {
      await declareReady(t, { reclaimPolicy: 'delete' });
      await t.remove();
    },
    isReached: isGone,
    recorded: ['webhook.create', 'webhook.delete'],
  },
  {
    name: 'a deletion that keeps the webhook',
    actions: ['releaseWebhook', 'removeFinalizer'],
    async prepare(t) {
      await declareReady(t);
      await t.remove();
    },
    isReached: isGone,
    recorded: ['webhook.create', 'webhook.release'],
    counts: one,
  },
  {
    name: 'a new replay',
    actions: ['addFinalizer', 'requestRedelivery'],
    async prepare(t) {
      await declareReady(t);
      await declareReplay(t);
    },
    isReached: isRequested,
    recorded: ['webhook.create', 'webhook.redeliver'],
    counts: { ...one, redeliveries: 1 },
  },
  {
    name: 'a deletion of a replay under way',
    actions: ['cancelRedelivery', 'removeFinalizer'],
    async prepare(t) {
      await declareReady(t);
      await declareReplay(t);
      await t.runUntil(() => isRequested(t));
      await t.custom.deleteNamespacedCustomObject(replayOf(t));
    },
    isReached: isReplayGone,
    recorded: ['webhook.create', 'webhook.redeliver', 'webhook.cancel_redelivery', 'webhook.redelivered'],
    counts: { ...one, redeliveries: 1 },
  },
  {
    name: 'the expiry of a replay',
    actions: ['deleteReplay'],
    async prepare(t) {
      await declareReady(t);
      await declareReplay(t, { dryRun: true, ttlSecondsAfterFinished: 0 });
      await t.runUntil(async () => (await readReplay(t))?.status?.finishedAt !== undefined);
    },
    isReached: isReplayGone,
    recorded: ['webhook.create'],
    counts: one,
  },
];

/**
 * Kills an operator during a transition, and lets another complete it. Returns whether it had
 * completed.
 */
export async function interrupt(
  t: Declared,
  transition: Transition,
  kill: Parameters<Declared['runAndKill']>[0],
): Promise<{ wasReached: boolean; recorded: string[]; counts: Transition['counts'] }> {
  await transition.prepare(t);
  const isReached = () => transition.isReached(t);
  await t.runAndKill(kill, isReached);
  const wasReached = await isReached();
  await t.runUntil(isReached);
  const [counts] = await t.rows<NonNullable<Transition['counts']>>(
    `select (select count(*)::int from webhook where organization_id = $1) as webhooks,
      (select count(*)::int from webhook_secret where organization_id = $1) as secrets,
      (select count(*)::int from redelivery where organization_id = $1) as redeliveries`,
    [t.orgId],
  );
  return { wasReached, recorded: await t.actions(), counts };
}
