import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import { StartupError } from '#runtime/errors.ts';
import { fixturePath } from '#test/fixtures.ts';
import { withinOneDay } from '#test/one-day.ts';
import { type Base, findBase } from './base.ts';
import { type Cluster, findFreeAddresses, getCluster } from './cluster.ts';
import { signInToConsole } from './console.ts';
import { startEvents, startGrant } from './events.ts';
import { explainOpen } from './explain-open.ts';
import { buildBrokenImage, buildExpandingImages, buildImages, repository } from './images.ts';
import { checkIngress, openRoutes } from './ingress.ts';
import { type IngressController, startIngressController } from './ingress-controller.ts';
import { fillRegion, type Installation, importFixture, makeSecrets } from './installation.ts';
import { judgeEvents } from './judge.ts';
import { listOperations, type Operated, type OperationsOptions } from './operations.ts';
import { changeLeader, declareWebhook, regionValues, upgradeDefinitions, upgradeOperator } from './operator.ts';
import { Pace } from './pace.ts';
import { findErrors } from './pods.ts';
import { startPolicies } from './policies.ts';
import { describeFigures, type RegionFigures } from './print.ts';
import { testRelease } from './probe.ts';
import { compareResponses, startReads } from './reads.ts';
import { createReceiverService, readArrivals, startReceiver } from './receiver.ts';
import { apiOrigin, applySecrets, consoleOrigin, createRelease, type Image, type Release } from './release.ts';
import { startServers } from './servers.ts';
import { startWith } from './started.ts';
import { untilSettled } from './waiting.ts';

const regions: readonly Region[] = ['us', 'ca'];
const namespace = 'org-api';
/**
 * Highest load of each region, well below what a key may read and what two cores carry beside a
 * cluster. A machine that answers slowly gets less (`Pace`).
 */
const readsPerSecond = 20;
const eventsPerSecond = 2;
/** More than a stopping worker may take. */
const graceMs = 90_000;

export interface ClusterTestOptions {
  quick: boolean;
  /** Whether a cluster that this brings up is left running. */
  keepsCluster: () => boolean;
  /** For values files. */
  folder: string;
  /** What pods are chosen by. */
  seed: number;
  /** Gets what was started, so that an interruption takes it down, too. */
  started: AsyncDisposableStack;
  report: (line: string) => void;
}

/** Runs the whole test. Returns its figures as lines, and every problem. */
export async function runClusterTest(options: ClusterTestOptions): Promise<{ lines: string[]; problems: string[] }> {
  const { quick, keepsCluster, seed, started, report } = options;
  // One release creates the Region, of which a namespace has one.
  const operatedRegion = quick ? null : regions[0];
  const base = await findWantedBase(options);
  const cluster = await startWith(started, async () => {
    const found = await getCluster(report);
    return { ...found, stop: async () => void (keepsCluster() || (await found.stop())) };
  });
  const servers = await startServers(regions, cluster.hostAddress, started, report);
  const images = await buildAllImages(cluster, base, options);
  const { first } = images;
  const problems: string[] = [];
  const policies = await startWith(started, () => startPolicies(cluster, { isWanted: !quick, report }));
  await makeNamespace(cluster);
  const origins = regions.flatMap((region) => [apiOrigin(region), consoleOrigin(region)]);
  const hasIngress = !quick && cluster.localNode !== null;
  const startController = async () => (hasIngress ? startIngressController(cluster, { namespace, origins }) : null);
  const controller = await startWith(started, startController);
  const receiver = await createReceiverService(cluster, namespace);
  const installed: (Installation & Operated)[] = [];
  const webhookSecrets: Record<string, string[]> = {};
  for (const one of servers) {
    const isOperated = one.region === operatedRegion;
    const pool = new pg.Pool({ connectionString: one.ownerUrl, max: 2 });
    started.defer(() => pool.end());
    const installation = {
      servers: one,
      pool,
      image: first,
      receiver,
      folder: options.folder,
      isOperated,
      controller,
    };
    installed.push(await installRegion(cluster, installation, webhookSecrets));
    report(`${one.region}: installed, and the release waited until it serves`);
  }
  const operated = installed.filter(({ servers }) => servers.region === operatedRegion);
  for (const region of operated) await declareOne(cluster, region, { image: first, receiver, webhookSecrets, report });
  await startReceiver(cluster, { namespace, image: `${first.repository}:${first.tag}`, secrets: webhookSecrets });
  problems.push(...(await checkResponses(installed, report)));
  problems.push(...(await policies.check(installed)));
  await deliverOne(cluster, installed, report);
  for (const region of operated) problems.push(...(await changeLeader(cluster, region, report)));
  for (const region of installed) {
    const address = region.routes?.console ?? (await getService(cluster, region.release, 'console'));
    const visitor = await signInToConsole(region, { address, origin: consoleOrigin(region.servers.region) });
    report(`${region.servers.region}: an owner enrolled in the console and signed in`);
    problems.push(...(await checkIngress(cluster, { ...region, visitor }, report)));
  }
  if (!quick) problems.push(...(await probe(cluster, installed, first, report)));
  report(`pods are chosen by the seed ${seed}`);
  const operations = listOperations(cluster, installed, { images, operated, receiver, seed, report });
  const { figures, failed } = await operateUnderLoad(
    cluster,
    installed,
    quick ? operations.slice(0, 1) : operations,
    report,
  );
  const described = describeFigures(figures);
  problems.push(...described.problems, ...failed);
  problems.push(...(await uninstall(cluster, installed, report)));
  return { lines: described.lines, problems };
}

/**
 * Returns the base, before anything is started or built. A base with another schema cannot be
 * upgraded: then there is none with `quick`, which reports it, and the whole test ends.
 */
async function findWantedBase({ quick, started, report }: ClusterTestOptions): Promise<Base | null> {
  const { base, problem } = await findBase(started, report);
  if (problem !== null && !quick) throw new StartupError(problem);
  report(problem ?? `the upgrade starts from ${base?.commit}`);
  return base;
}

/**
 * Builds the image of the base, and of this checkout: with `quick` one, else also changed ones.
 * Without a base this checkout is the first version, too.
 */
async function buildAllImages(
  cluster: Cluster,
  base: Base | null,
  { quick, report }: Pick<ClusterTestOptions, 'quick' | 'report'>,
): Promise<OperationsOptions['images']> {
  const wanted = [
    { tag: 'test-1', folder: base?.folder ?? repository },
    { tag: 'test-2', folder: repository },
  ];
  const [first, second] = await buildImages(cluster, wanted, report);
  if (first === undefined || second === undefined) throw new Error('no images were built');
  const same = { broken: second, failing: second, repaired: second };
  if (quick) return { first, second, ...same };
  const broken = await buildBrokenImage(cluster, second, 'test-3');
  const expanding = await buildExpandingImages(cluster, second, { failing: 'test-4', repaired: 'test-5' });
  return { first, second, broken, ...expanding };
}

/** Installs a region and fills it; adds its webhooks' secrets to `webhookSecrets`. */
async function installRegion(
  cluster: Cluster,
  options: Pick<Installation, 'servers' | 'pool'> & {
    image: Image;
    receiver: string;
    folder: string;
    isOperated: boolean;
    controller: IngressController | null;
  },
  webhookSecrets: Record<string, string[]>,
): Promise<Installation & Operated> {
  const { servers, pool, image, receiver, folder, isOperated, controller } = options;
  const secrets = makeSecrets();
  await applySecrets(cluster, namespace, { servers, secrets });
  const release = createRelease(cluster, { namespace, servers, folder });
  if (isOperated) {
    await upgradeDefinitions(cluster, image);
    release.set(regionValues);
  }
  if (controller !== null) release.set(controller.values);
  await release.upgrade(image);
  const filled = await fillRegion({ servers, secrets, receiver, allow: cluster.serviceRange });
  Object.assign(webhookSecrets, filled.webhookSecrets);
  const api = await getService(cluster, release, 'api');
  const routes = controller && (await openRoutes(controller, servers.region));
  return { ...filled, servers, secrets, release, pool, api, routes };
}

/** Has the operator create another webhook at the receiver. */
async function declareOne(
  cluster: Cluster,
  region: Installation & Operated,
  options: {
    image: Image;
    receiver: string;
    webhookSecrets: Record<string, string[]>;
    report: (line: string) => void;
  },
): Promise<void> {
  const { image, receiver, webhookSecrets, report } = options;
  await upgradeOperator(cluster, region, image);
  const declared = await declareWebhook(cluster, { ...region, receiver });
  region.webhookIds.set(declared.endpoint, declared.webhookId);
  webhookSecrets[declared.endpoint] = [declared.secret];
  report(`${region.servers.region}: the operator found the Region ready, created a webhook and published its secret`);
}

/**
 * A new namespace that enforces Pod Security "restricted", so that a pod with more rights is not
 * created.
 */
async function makeNamespace(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=120s'], {
    timeoutMs: 150_000,
  });
  const labels = Object.fromEntries(
    ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  );
  await cluster.apply('default', [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }]);
}

/**
 * A component's Service, by its cluster address, because this machine cannot resolve the cluster's
 * names.
 */
async function getService(cluster: Cluster, { name }: Release, component: string): Promise<string> {
  const path = '{.spec.clusterIP}:{.spec.ports[0].port}';
  const service = ['get', 'service', `${name}-${component}`, '-n', namespace];
  return `http://${await cluster.kubectl([...service, '-o', `jsonpath=${path}`])}`;
}

async function checkResponses(installed: readonly Installation[], report: (line: string) => void): Promise<string[]> {
  const problems: string[] = [];
  for (const { api, routes, organizations, servers } of installed) {
    const expectedFile = fixturePath(`${servers.region}.expected.json`);
    for (const [way, url] of Object.entries({ Service: api, Ingress: routes?.api })) {
      if (url === undefined) continue;
      const { right, wrong } = await withinOneDay(async () => {
        const { shiftedDays } = await importFixture(servers);
        return compareResponses({ api: url, organizations, expectedFile, shiftedDays });
      });
      report(`${servers.region}: ${right} of ${right + wrong.length} answers through the ${way} are as expected`);
      problems.push(...wrong.map((one) => `through the ${way}: ${one}`));
    }
  }
  return problems;
}

/** Runs `helm test` for each release, with unused Service addresses. */
async function probe(
  cluster: Cluster,
  installed: readonly Operated[],
  image: Image,
  report: (line: string) => void,
): Promise<string[]> {
  const problems: string[] = [];
  const addresses = await findFreeAddresses(cluster, installed.length);
  for (const [index, region] of installed.entries()) {
    const lines = await testRelease(cluster, { ...region, image, clusterIP: addresses[index] ?? '' });
    for (const line of lines) report(`${region.servers.region}: helm test: ${line}`);
    problems.push(...lines.filter((line) => line.startsWith('FAILED')));
    if (lines.length === 0) problems.push(`${region.servers.region}: helm test printed nothing`);
  }
  return problems;
}

/** Creates one event per region and waits for its arrival, before any load. */
async function deliverOne(
  cluster: Cluster,
  installed: readonly Installation[],
  report: (line: string) => void,
): Promise<void> {
  for (const { pool, organizations, servers } of installed) {
    const [organization] = organizations;
    if (organization === undefined) continue;
    await startGrant(pool, organization);
    await untilSettled(pool);
    const hasArrived = await readArrivals(cluster, namespace, async (arrivals) => {
      const result = arrivals.some(({ endpoint }) => endpoint === organization.id);
      return { result, isComplete: result };
    });
    if (!hasArrived) throw new Error(`${servers.region}: an event was delivered to no one`);
    report(`${servers.region}: a grant started, and its event arrived signed`);
  }
}

async function operateUnderLoad(
  cluster: Cluster,
  installed: readonly (Installation & Operated)[],
  operations: ReturnType<typeof listOperations>,
  report: (line: string) => void,
): Promise<{ figures: RegionFigures[]; failed: string[] }> {
  let doing = 'nothing yet';
  const failed: string[] = [];
  const pace = new Pace();
  const loads = installed.map(({ api, organizations, servers, release }) => ({
    reads: startReads({
      api,
      organizations,
      perSecond: readsPerSecond,
      pace,
      doing: () => doing,
      explain: (requestId) => findErrors(cluster, release, requestId),
    }),
    events: startEvents({
      ownerUrl: servers.ownerUrl,
      organizations,
      perSecond: eventsPerSecond,
      pace,
      onError: (cause) => failed.push(`an event could not be caused: ${(cause as Error).message}`),
    }),
  }));
  await wait(3_000);
  for (const { name, run } of operations) {
    doing = name;
    const startedAt = performance.now();
    await run().catch((error: Error) => failed.push(`${name}: ${error.message}`));
    report(`${name}: ${Math.round((performance.now() - startedAt) / 1000)} s under load`);
  }
  doing = 'the end';
  await wait(3_000);
  const figures: RegionFigures[] = [];
  for (const [index, load] of loads.entries()) {
    const one = installed[index];
    if (one === undefined) continue;
    await load.events.stop();
    const reads = await load.reads.stop();
    await untilSettled(one.pool).catch(async (error: Error) =>
      failed.push(`${one.servers.region}: ${error.message}\n${await explainOpen(cluster, one)}`),
    );
    figures.push({ region: one.servers.region, reads, events: await judge(cluster, one) });
  }
  return { figures, failed };
}

async function judge(cluster: Cluster, { pool, webhookIds }: Installation) {
  return readArrivals(cluster, namespace, async (all) => {
    const arrivals = all.flatMap((arrival) => {
      const webhookId = webhookIds.get(arrival.endpoint);
      return webhookId === undefined ? [] : [{ ...arrival, endpoint: webhookId }];
    });
    const figures = await judgeEvents(pool, arrivals);
    return { result: figures, isComplete: figures.lost === 0 };
  });
}

/** Uninstalls a release and checks that the namespace contains only what its notes list. */
async function uninstall(
  cluster: Cluster,
  installed: readonly Operated[],
  report: (line: string) => void,
): Promise<string[]> {
  const problems: string[] = [];
  const uninstallOne = async ({ release }: Operated) => {
    await release.uninstall();
    const kinds = 'all,configmap,secret,serviceaccount,networkpolicy,poddisruptionbudget,ingress,job';
    const list = () =>
      cluster.kubectl([
        'get',
        kinds,
        '-n',
        namespace,
        '-l',
        `app.kubernetes.io/instance=${release.name}`,
        '-o',
        'name',
        '--ignore-not-found',
      ]);
    let left = await list();
    // Helm waits for its objects; their pods have their grace period.
    for (
      const giveUpAt = performance.now() + graceMs;
      left.trim() !== '' && performance.now() < giveUpAt;
      left = await list()
    )
      await wait(1_000);
    if (left.trim() !== '') problems.push(`helm uninstall left ${left.trim().split('\n').join(', ')}`);
    report(`${release.name}: uninstalled`);
  };
  await Promise.all(installed.map(uninstallOne));
  return problems;
}
