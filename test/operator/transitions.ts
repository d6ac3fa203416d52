/** Transitions of objects by the operator, for tests that interrupt it on the way. */
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
   * The actions that the audit log has afterwards, each once; rows of one moment have no order.
   */
  recorded: string[];
  /** The rows that the database has afterwards. */
  counts?: { webhooks: number; secrets: number };
}

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

const isGone = async (t: Declared) => !(await t.exists());
const one = { webhooks: 1, secrets: 1 };

/** Together they have every action. */
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
    actions: ['detachWebhook', 'removeFinalizer'],
    async prepare(t) {
      await declareReady(t);
      await t.remove();
    },
    isReached: isGone,
    recorded: ['webhook.create', 'webhook.detach'],
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
      (select count(*)::int from webhook_secret where organization_id = $1) as secrets`,
    [t.orgId],
  );
  return { wasReached, recorded: await t.actions(), counts };
}
