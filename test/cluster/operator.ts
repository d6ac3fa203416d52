import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cluster } from './cluster.ts';
import { startGrant } from './events.ts';
import { type Installation, waitUntilSettled } from './installation.ts';
import { readArrivals } from './receiver.ts';
import type { Image, Release } from './release.ts';

const charts = fileURLToPath(new URL('../../charts', import.meta.url));
const operator = 'operator';
const subscription = 'declared';
const secretName = 'declared-webhook';
const replay = 'declared-again';
/** Events that are sent twice: first by themselves, then by the replay. */
const eventCount = 20;
const settleDeadlineMs = 60_000;
const completeDeadlineMs = 120_000;

/** Installs the definitions, which a chart that creates a Region needs first. */
export async function installDefinitions(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.helm(['upgrade', '--install', 'org-api-crds', `${charts}/org-api-crds`, '-n', namespace]);
}

/** Values of the release that creates the namespace's Region. */
export const regionValues = {
  secrets: { operatorDatabaseUrl: { key: 'OPERATOR_DATABASE_URL' } },
  operator: { region: { create: true, spec: { allowedOrganizations: ['*'] } } },
};

/**
 * Installs the operator beside a release, waits until the Region is ready, and declares a webhook
 * at the receiver. Returns it under the name of its endpoint, with the secret that the operator
 * published.
 */
export async function declareWebhook(
  cluster: Cluster,
  options: Pick<Installation, 'organizations' | 'servers'> & { release: Release; image: Image; receiver: string },
): Promise<{ endpoint: string; webhookId: string; secret: string }> {
  const { organizations, servers, release, image, receiver } = options;
  const { namespace } = release;
  const values = {
    region: servers.region,
    image: { ...image, pullPolicy: 'IfNotPresent' },
    secrets: [release.name],
    webhooks: { enabled: true },
    allowPlaintext: ['postgresql', 'temporal'],
  };
  const chart = ['install', operator, `${charts}/org-api-operator`, '-n', namespace];
  await cluster.helm([...chart, '--values', '-', '--wait', '--timeout', '120s'], {
    input: JSON.stringify(values),
    timeoutMs: 150_000,
  });
  const waitFor = (object: string) =>
    cluster.kubectl(['wait', object, '-n', namespace, '--for=condition=Ready', '--timeout=90s']);
  await waitFor('region/region');
  await cluster.apply(namespace, [
    {
      apiVersion: 'orgapi.dev/v1alpha1',
      kind: 'WebhookSubscription',
      metadata: { name: subscription },
      spec: {
        organizationId: organizations[0]?.id,
        url: `${receiver}/hooks/${subscription}`,
        eventTypes: ['client.started'],
        secret: { generate: { secretName } },
        reclaimPolicy: 'retain',
      },
    },
  ]);
  await waitFor(`webhooksubscription/${subscription}`);
  const read = (object: string, field: string) =>
    cluster.kubectl(['get', object, '-n', namespace, '-o', `jsonpath={${field}}`]);
  const webhookId = await read(`webhooksubscription/${subscription}`, '.status.id');
  const secret = Buffer.from(await read(`secret/${secretName}`, '.data.secret'), 'base64').toString();
  return { endpoint: subscription, webhookId, secret };
}

interface Replayed {
  matched?: number;
  redelivered?: number;
  failed?: number;
  conditions?: { type: string; status: string }[];
}

/**
 * Sends the events of the declared webhook again by a DeliveryReplay, and kills the pod that leads
 * meanwhile. Uninstalls the operator at the end: the webhook stays, and the events of the load that
 * follows reach it without one. Returns what is wrong: the counts in the status must be those of
 * the receiver.
 */
export async function replayEvents(
  cluster: Cluster,
  { release: { namespace }, pool, organizations }: Pick<Installation, 'pool' | 'organizations'> & { release: Release },
  report: (line: string) => void,
): Promise<string[]> {
  const [organization] = organizations;
  if (organization === undefined) throw new Error('there is no organization to declare a webhook for');
  for (let made = 0; made < eventCount; made += 1) await startGrant(pool, organization);
  await waitUntilSettled(pool, settleDeadlineMs);
  const first = await countArrivals(cluster, namespace, (counts) => counts.size > eventCount);
  await cluster.apply(namespace, [
    {
      apiVersion: 'orgapi.dev/v1alpha1',
      kind: 'DeliveryReplay',
      metadata: { name: replay },
      spec: {
        subscription,
        from: new Date(Date.now() - 3_600_000).toISOString(),
        to: new Date().toISOString(),
        onlyFailed: false,
        rate: 2,
      },
    },
  ]);
  const read = async (object: string, field: string) =>
    cluster.kubectl(['get', object, '-n', namespace, '-o', `jsonpath={${field}}`]);
  await waitUntil(async () => Number(await read(`deliveryreplay/${replay}`, '.status.redelivered')) > 0);
  const leader = await read('lease/org-api-operator', '.spec.holderIdentity');
  await cluster.kubectl(['delete', 'pod', leader, '-n', namespace, '--force', '--grace-period=0']);
  const status = async () => JSON.parse(await read(`deliveryreplay/${replay}`, '.status')) as Replayed;
  await waitUntil(async () =>
    Boolean((await status()).conditions?.some((one) => one.type === 'Complete' && one.status === 'True')),
  );
  const problems: string[] = [];
  const next = await read('lease/org-api-operator', '.spec.holderIdentity');
  if (next === leader) problems.push(`the operator: ${leader} still leads after it was killed`);
  const { matched, redelivered, failed } = await status();
  const all = await countArrivals(cluster, namespace, (counts) => [...counts.values()].every((count) => count > 1));
  const again = [...all].map(([eventId, count]) => count - (first.get(eventId) ?? 0));
  const received = again.reduce((sum, count) => sum + count, 0);
  report(`the operator: ${redelivered} of ${matched} events were sent again, and the receiver counted ${received}`);
  if (matched !== first.size || redelivered !== received || failed !== 0 || again.some((count) => count !== 1))
    problems.push(
      `the operator: a replay of ${first.size} events says ${matched} matched, ${redelivered} redelivered, ` +
        `${failed} failed; the receiver counted ${received}`,
    );
  await uninstallOperator(cluster, namespace);
  return problems;
}

/** Deletes what was declared, which needs the operator, and then the operator. */
async function uninstallOperator(cluster: Cluster, namespace: string): Promise<void> {
  const objects = [`webhooksubscription/${subscription}`, `deliveryreplay/${replay}`];
  await cluster.kubectl(['delete', ...objects, '-n', namespace, '--timeout=60s']);
  await cluster.helm(['uninstall', operator, '-n', namespace, '--wait', '--timeout', '60s']);
}

/** How often each event reached the declared endpoint, once `isComplete` or after a while. */
function countArrivals(
  cluster: Cluster,
  namespace: string,
  isComplete: (counts: Map<string, number>) => boolean,
): Promise<Map<string, number>> {
  return readArrivals(cluster, namespace, async (arrivals) => {
    const result = new Map<string, number>();
    for (const { endpoint, eventId } of arrivals)
      if (endpoint === subscription) result.set(eventId, (result.get(eventId) ?? 0) + 1);
    return { result, isComplete: isComplete(result) };
  });
}

async function waitUntil(isTrue: () => Promise<boolean>): Promise<void> {
  for (const giveUpAt = performance.now() + completeDeadlineMs; !(await isTrue()); await wait(500))
    if (performance.now() > giveUpAt)
      throw new Error(`the replay did not complete within ${completeDeadlineMs / 1_000} s`);
}
