import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { CommandFailedError } from './command.ts';
import { addedColumns } from './images.ts';
import type { Installation } from './installation.ts';
import { type Image, imageValues, listPeers, type Release } from './release.ts';

const operator = 'operator';
const subscription = 'declared';
const secretName = 'declared-webhook';
const waitDeadlineMs = 120_000;

/**
 * Installs or upgrades the definitions, which a chart that creates a Region needs first, as a
 * release in a namespace of its own.
 */
export async function upgradeDefinitions(cluster: Cluster, { charts }: Image): Promise<void> {
  const release = ['org-api-crds', `${charts}/org-api-crds`, '-n', 'org-api-crds', '--create-namespace'];
  await cluster.helm(['upgrade', '--install', ...release]);
}

/** Values of the release that creates the namespace's Region. */
export const regionValues = {
  secrets: { operatorDatabaseUrl: { key: 'OPERATOR_DATABASE_URL' } },
  operator: { region: { create: true, spec: { allowedOrganizations: ['*'] } } },
};

/** Installs or upgrades the operator beside a release, and waits until the Region is ready. */
export async function upgradeOperator(
  cluster: Cluster,
  { servers, release }: Pick<Installation, 'servers'> & { release: Release },
  image: Image,
): Promise<void> {
  const { namespace } = release;
  const { dns, database, temporal } = listPeers(servers);
  const slices = ['get', 'endpointslices', '-n', 'default', '-l', 'kubernetes.io/service-name=kubernetes'];
  const fields = 'jsonpath={.items[0].endpoints[0].addresses[0]} {.items[0].ports[0].port}';
  const [ip, port] = (await cluster.kubectl([...slices, '-o', fields])).split(' ');
  const apiServer = { to: [{ ipBlock: { cidr: `${ip}/32` } }], port: Number(port) };
  const values = {
    region: servers.region,
    image: imageValues(image),
    secrets: [release.name],
    webhooks: { enabled: true },
    networkPolicy: { dns, database, temporal, apiServer },
  };
  const chart = ['upgrade', '--install', operator, `${image.charts}/org-api-operator`, '-n', namespace];
  await cluster.helm([...chart, '--values', '-', '--wait', '--timeout', '120s'], {
    input: JSON.stringify(values),
    timeoutMs: 150_000,
  });
  await waitForReady(cluster, namespace, 'region/region');
}

const waitForReady = (cluster: Cluster, namespace: string, object: string) =>
  cluster.kubectl(['wait', object, '-n', namespace, '--for=condition=Ready', '--timeout=90s']);

/**
 * Declares a webhook at the receiver. Returns it under the name of its endpoint, with the secret
 * that the operator published.
 */
export async function declareWebhook(
  cluster: Cluster,
  { organizations, release, receiver }: Pick<Installation, 'organizations'> & { release: Release; receiver: string },
): Promise<{ endpoint: string; webhookId: string; secret: string }> {
  const { namespace } = release;
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
  await waitForReady(cluster, namespace, `webhooksubscription/${subscription}`);
  const read = (object: string, field: string) =>
    cluster.kubectl(['get', object, '-n', namespace, '-o', `jsonpath={${field}}`]);
  const webhookId = await read(`webhooksubscription/${subscription}`, '.status.id');
  const secret = Buffer.from(await read(`secret/${secretName}`, '.data.secret'), 'base64').toString();
  return { endpoint: subscription, webhookId, secret };
}

/**
 * Kills the leading pod of the operator, and suspends and resumes the declared webhook. Returns the
 * problems: the other pod must lead and apply the changes.
 */
export async function changeLeader(
  cluster: Cluster,
  { release: { namespace } }: { release: Release },
  report: (line: string) => void,
): Promise<string[]> {
  const read = (object: string, field: string) =>
    cluster.kubectl(['get', object, '-n', namespace, '-o', `jsonpath={${field}}`]);
  const leader = await read('lease/org-api-operator', '.spec.holderIdentity');
  await cluster.kubectl(['delete', 'pod', leader, '-n', namespace, '--force', '--grace-period=0']);
  const object = `webhooksubscription/${subscription}`;
  for (const suspend of [true, false]) {
    await cluster.kubectl([
      'patch',
      object,
      '-n',
      namespace,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { suspend } }),
    ]);
    await waitUntil(
      async () =>
        (await read(object, '.metadata.generation')) === (await read(object, '.status.observedGeneration')) &&
        (await read(object, '.status.conditions[?(@.type=="Delivering")].status')) === (suspend ? 'False' : 'True'),
      'a change of a webhook was not applied after the leader was killed',
    );
  }
  const next = await read('lease/org-api-operator', '.spec.holderIdentity');
  report(`the operator: ${next} applied changes after ${leader} was killed`);
  return next === leader ? [`the operator: ${leader} still leads after it was killed`] : [];
}

/**
 * Releases an image that adds columns and whose workflows fail. Its worker must stay unready, so
 * that Helm rejects the release while pods of `current` deliver with the new schema. Then it
 * releases the repaired image, and finally `current` again, which works with the new schema.
 * Uninstalls the operator at the end: the declared webhook stays, and later events reach it without
 * an operator.
 * @throws Error when a release ends otherwise.
 */
export async function releaseFailingWorkers(
  cluster: Cluster,
  { release, pool }: Pick<Installation, 'pool'> & { release: Release },
  { current, failing, repaired }: { current: Image; failing: Image; repaired: Image },
): Promise<void> {
  const { namespace } = release;
  try {
    await release.upgrade(current);
    if (await isTaken(release.upgrade(failing, { timeout: '90s' })))
      throw new Error('helm took a release whose workflows fail for a good one');
    if ((await countAddedColumns(pool)) !== addedColumns.length)
      throw new Error('a release whose workers stopped has not added its columns');
    const delivered = await countDelivered(pool);
    await waitUntil(
      async () => (await countDelivered(pool)) > delivered,
      'no delivery was made beside stopped workers',
    );
    await release.upgrade(repaired);
    await release.upgrade(current);
  } finally {
    await uninstallOperator(cluster, namespace);
  }
}

async function isTaken(upgrade: Promise<void>): Promise<boolean> {
  try {
    await upgrade;
    return true;
  } catch (error) {
    if (error instanceof CommandFailedError) return false;
    throw error;
  }
}

async function countAddedColumns(pool: Installation['pool']): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from pg_attribute a
     join json_to_recordset($1) added ("table" text, "column" text)
       on a.attrelid = added."table"::regclass and a.attname = added."column"`,
    [JSON.stringify(addedColumns)],
  );
  return rows[0]?.count ?? 0;
}

async function countDelivered(pool: Installation['pool']): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from delivery where state = 'delivered'`,
  );
  return rows[0]?.count ?? 0;
}

/** Uninstalls the operator, and then deletes the declared object, which must not wait for one. */
async function uninstallOperator(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.helm(['uninstall', operator, '-n', namespace, '--wait', '--timeout', '180s'], { timeoutMs: 200_000 });
  await cluster.kubectl(['delete', `webhooksubscription/${subscription}`, '-n', namespace, '--timeout=30s']);
}

/** @throws Error with `problem` when it is not true in time. */
async function waitUntil(isTrue: () => Promise<boolean>, problem: string): Promise<void> {
  for (const giveUpAt = performance.now() + waitDeadlineMs; !(await isTrue()); await wait(500))
    if (performance.now() > giveUpAt) throw new Error(problem);
}
