/**
 * The operations guide: its values render, its commands exist, its SQL runs, and the migrations run
 * on the PostgreSQL that it describes.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { makeCertificate } from '#test/certificates.ts';
import { brokenLinks, listBlocks, listCommands, readGuide, readRunbooks } from '#test/documents.ts';
import { chart, listPods, type Manifest, ofKind, pick, render } from '#test/render-charts.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { readConfig as readOperatorConfig } from '../../apps/operator/config.ts';
import { Connections } from '../../apps/operator/region/connections.ts';
import { findProblem } from './commands.ts';
import { findProblems, promtool, watched } from './promtool.ts';
import { kubernetesVersions, listUndecoded } from './schemas.ts';

const pages = readGuide();
const guide = { file: 'docs/operations', text: pages.map(({ text }) => text).join('\n') };
const findPage = (name: string) => pages.find(({ file }) => path.basename(file) === name) ?? { file: name, text: '' };
const examples = listBlocks(guide, 'yaml');
const findFile = (example: string) => /^# ([\w.-]+)/.exec(example)?.[1];
const isAddition = (example: string) => example.split('\n')[0]?.includes(', also') === true;
const values = parse(examples.find((one) => findFile(one) === 'us-values.yaml' && !isAddition(one)) ?? '', {
  merge: true,
});
const additions = examples.filter((one) => findFile(one) === 'us-values.yaml' && isAddition(one));
const consoleOn = { console: { enabled: true, url: 'https://console.us.example.com' } };
const renderGuide = (more: object = {}) =>
  render({ region: null, release: 'us', values: merged(values, more) as object });

describe('the guide', () => {
  it('has values that render, alone and with each addition', () => {
    expect(listPods(renderGuide()).length).toBe(3);
    expect(additions.length).toBeGreaterThanOrEqual(10);
    for (const addition of additions) {
      expect(listPods(renderGuide(parse(addition, { merge: true }))).length, addition).toBeGreaterThan(2);
      // An alias of a whole section would also repeat what the file has of that section before.
      expect(addition).not.toMatch(/^\w+: &/m);
    }
  });

  it('makes the files of the second region from those of the first', () => {
    const folder = temporaryFolder();
    const readIn = (name: string) => parse(readFileSync(path.join(folder, 'ca', name), 'utf8'));
    writeFileSync(
      path.join(folder, 'us-values.yaml'),
      examples.find((one) => findFile(one) === 'us-values.yaml' && !isAddition(one)) ?? '',
    );
    const probe = additions.find((one) => one.includes('also: what helm test needs')) ?? '';
    writeFileSync(path.join(folder, 'orgctl.yaml'), examples.find((one) => findFile(one) === 'orgctl.yaml') ?? '');
    writeFileSync(path.join(folder, 'probe.yaml'), probe);
    writeFileSync(
      path.join(folder, 'collector.yaml'),
      examples.find((one) => findFile(one) === 'collector.yaml') ?? '',
    );
    const commands = listBlocks(findPage('README.md'), 'sh').find((one) => one.startsWith('mkdir ')) ?? '';
    execFileSync('bash', ['-ec', commands], { cwd: folder });
    const made = readIn('ca-values.yaml');
    const pod = readIn('orgctl.yaml');
    const environment = Object.fromEntries(pod.spec.containers[0].env.map((one: Manifest) => [one.name, one.value]));
    expect([pod.metadata.namespace, environment.REGION]).toEqual(['org-api-ca', 'ca']);
    expect(environment.WEBHOOK_ALLOW).toBe(readIn('probe.yaml').probe.clusterIP);
    expect(environment.WEBHOOK_ALLOW).not.toBe(parse(probe).probe.clusterIP);
    const { region, s3_bucket: bucket } = readIn('collector.yaml').exporters['awss3/anchors'].s3uploader;
    expect([region, bucket]).toEqual(['ca-central-1', 'example-org-api-anchors-ca']); // a country's data stays there
    const objects = render({ region: null, release: 'ca', namespace: 'org-api-ca', values: made });
    expect(made.baseUrls).toEqual(values.baseUrls);
    expect(ofKind(objects, 'Deployment').map(({ metadata }) => metadata.name)).toContain('ca-org-api-api');
    expect(JSON.stringify(objects).replaceAll(values.baseUrls.us, '')).not.toMatch(/\bus\b/);
  });

  const ofOperator = examples.filter((one) => findFile(one) === 'operator-values.yaml');
  const operatorValues = parse(ofOperator.find((one) => !isAddition(one)) ?? '');
  const renderOperator = (more: object = {}) =>
    render({
      from: path.join(chart, '../org-api-operator'),
      region: null,
      release: 'operator',
      namespace: 'org-api-us',
      values: merged(operatorValues, more) as object,
    });
  const withRegion = additions.find((one) => one.includes('also: the Region')) ?? '';

  it('has values of the operator that render, alone and with each addition', () => {
    for (const more of ['{}', ...ofOperator.filter(isAddition)])
      expect(ofKind(renderOperator(parse(more)), 'Deployment'), more).toHaveLength(1);
  });

  it('has values of both charts whose objects Kubernetes decodes, with each addition', async () => {
    const ofRegion = ['{}', ...additions].flatMap((one) => renderGuide(parse(one, { merge: true })));
    const objects = [
      ...ofRegion,
      ...['{}', ...ofOperator.filter(isAddition)].flatMap((one) => renderOperator(parse(one))),
    ];
    expect(ofKind(objects, 'Region').length).toBeGreaterThan(0);
    for (const version of kubernetesVersions) expect(await listUndecoded(objects, version), version).toEqual([]);
  });

  it('starts the operator beside a release: one image, one region, readable Secrets, and servers that it may reach', async () => {
    const manifests = renderGuide(parse(withRegion));
    const region = pick(manifests, 'Region');
    const [container] = pick(renderOperator(), 'Deployment').spec.template.spec.containers;
    expect(container.image).toBe(pick(manifests, 'Deployment', '-worker').spec.template.spec.containers[0].image);
    const environment = {
      ...Object.fromEntries(container.env.map((one: Manifest) => [one.name, one.value ?? 'operator'])),
    };
    const config = readOperatorConfig(environment);
    expect(config.region).toBe(region.spec.region);
    const read = [region.spec.database.secretRef.name, region.spec.webhooks.secretKeysRef.name];
    const rules = pick(renderOperator(), 'Role').rules.filter((one: Manifest) => one.resources.includes('secrets'));
    for (const name of read) expect(rules[0].resourceNames).toContain(name);

    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromOptions({
      clusters: [{ name: 'none', server: 'http://127.0.0.1:1' }],
      contexts: [{ name: 'none', cluster: 'none', user: 'none' }],
      users: [{ name: 'none' }],
      currentContext: 'none',
    });
    const connections = new Connections({
      api: kubeConfig.makeApiClient(CoreV1Api), // the Temporal of the guide needs no Secret
      namespace: config.namespace,
      report: { onRead() {}, onChanged() {}, onRejected() {}, onForgotten() {} },
    });
    onTestFinished(() => connections.close());
    await expect(connections.readTemporalServer(region)).resolves.toMatchObject({ server: {} });
    const rejected = { ...region, spec: { ...region.spec, allowPlaintext: [] } };
    await expect(connections.readTemporalServer(rejected)).rejects.toMatchObject({ reason: 'ValueInvalid' });
  });

  it('asks every app and the migrations for TLS to PostgreSQL, and for nothing else', () => {
    const [, parameters = ''] = /export TLS='([^']+)'/.exec(guide.text) ?? [];
    const file = new URLSearchParams(parameters).get('sslrootcert') ?? '';
    const folder = temporaryFolder();
    const text = makeCertificate({ subject: 'An authority', isAuthority: true }).cert;
    writeFileSync(path.join(folder, 'ca.crt'), text);
    const url = `postgresql://api:p@db/org_api${parameters.replace(file, path.join(folder, 'ca.crt'))}`;
    expect(parsePostgresUrl(url).tls).toMatchObject({ isVerified: true, ca: { text }, own: null });
    expect(guide.text).toContain('org_api$TLS"; }');

    const tls = additions.find((one) => one.includes('postgresql-ca')) ?? '';
    const pods = listPods(renderGuide(merged(parse(tls, { merge: true }), consoleOn) as object));
    pods.push(...listPods(renderOperator()));
    expect(pods).toHaveLength(5);
    for (const { name, spec } of pods) {
      const [container] = spec.containers;
      const mount = container.volumeMounts.find((one: Manifest) => one.name === 'postgresql-ca');
      const { secret } = spec.volumes.find((one: Manifest) => one.name === 'postgresql-ca');
      expect(path.posix.join(mount.mountPath, secret.items[0].path), name).toBe(file);
      expect(container.env.map((one: Manifest) => one.name)).not.toContain('NODE_EXTRA_CA_CERTS');
    }
  });

  it('opens the network policies to the servers that it sets up', () => {
    const all = examples.flatMap((one) =>
      parseAllDocuments(one, { merge: true }).map((document) => document.toJS() as Manifest),
    );
    const cluster = all.find(({ kind }) => kind === 'Cluster');
    const peers = JSON.stringify(pick(renderGuide(), 'NetworkPolicy', '-api').spec.egress);
    expect(peers).toContain(`"cnpg.io/cluster":"${cluster.metadata.name}"`);
    const valkey = all.find((one) => one.valkeyConfig !== undefined);
    expect(peers).toContain(`"app.kubernetes.io/name":"${valkey.nameOverride}"`);
    const namespaces = all.find((one) => one.server?.dynamicConfig !== undefined).server.config.namespaces.namespace;
    expect(namespaces.map(({ name }: Manifest) => name)).toContain(values.temporal.namespace);
  });

  it('moves traffic to a second release that changes nothing of the first', () => {
    const named = (name: string) => parse(examples.find((one) => findFile(one) === name) ?? '');
    const first = additions.reduce((below, one) => merged(below, parse(one, { merge: true })) as object, {});
    const probe = { probe: { webhookId: '0198c0de-0000-7000-8000-000000000001' } };
    const of = (release: string, more: object) =>
      render({ region: null, namespace: 'org-api-us', release, values: merged(values, more) as object });
    const [one, two] = [
      of('us', merged(first, probe) as object),
      of('blue', merged(first, named('blue-values.yaml')) as object),
    ];
    const keys = (manifests: Manifest[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set([...keys(one), ...keys(two)]).size).toBe(one.length + two.length);
    for (const kind of ['HTTPRoute', 'Ingress', 'ConfigMap', 'Pod']) expect(ofKind(two, kind), kind).toEqual([]);
    expect(ofKind(two, 'Service').filter(({ spec }) => spec.clusterIP?.includes('.'))).toEqual([]);
    const [own, other] = pick(one, 'HTTPRoute', '-api').spec.rules[0].backendRefs;
    expect([own.weight, other.weight]).toEqual([90, 10]);
    const service = ofKind(two, 'Service').find(({ metadata }) => metadata.name === other.name);
    expect(service.spec.ports.map(({ port }: Manifest) => port)).toContain(other.port);
  });

  it('applies what it writes, waits for it, and uses the same names everywhere', () => {
    const applied = listCommands(guide).join('\n');
    const ofOthers = ['alertmanager.yaml', 'collector.yaml']; // settings of programs that the reader runs
    for (const file of examples.map(findFile).filter((name) => !ofOthers.includes(name ?? '')))
      expect(applied, file).toMatch(new RegExp(`(apply -f|--values) ${file}`));
    const releases = [...applied.matchAll(/^helm \S+(?: --install)? (\S+) charts\/(org-api-\S+)/gm)];
    expect(new Set(releases.map(([, name, from]) => `${from} as ${name}`))).toEqual(
      new Set(['org-api-crds as org-api-crds', 'org-api-operator as operator']),
    );
    const objects = examples
      .flatMap((one) => parseAllDocuments(one, { merge: true }).map((document) => document.toJS() as Manifest))
      .filter((one) => one.kind !== undefined);
    const clusters = objects.filter(({ kind }) => kind === 'Cluster');
    expect(clusters.map(({ metadata }) => metadata.name)).toEqual([
      'org-api-us',
      'temporal-postgresql',
      'org-api-us-2',
    ]);
    for (const { metadata } of clusters)
      expect(applied).toContain(
        `-n ${metadata.namespace === 'temporal' ? 'temporal' : '$NS'} wait --for=condition=Ready cluster.postgresql.cnpg.io/${metadata.name} `,
      );
    // CloudNativePG creates <name>-rw, <name>-app and <name>-ca of each cluster. A command of the
    // page must create all other names.
    const ofClusters = clusters.flatMap(({ metadata: { name } }) => [`${name}-rw`, `${name}-app`, `${name}-ca`]);
    const hosts = [...guide.text.matchAll(/\b([\w-]+-rw)\b/g)].map(([, host]) => host);
    expect(hosts.length).toBeGreaterThan(2);
    const made = [...applied.matchAll(/create secret generic (\S+)/g)].map(([, name]) => name);
    const needed = [
      ...examples.join('\n').matchAll(/(?:existingSecret|usersExistingSecret|secretName|secretRef: \{name): ([\w-]+)/g),
      ...examples.join('\n').matchAll(/(?:secret|accessKeyId|secretAccessKey):\n +name: ([\w-]+)/g),
    ].map(([, name]) => name);
    expect(new Set(needed).size).toBeGreaterThan(5);
    const generated = [...examples.join('\n').matchAll(/generate: \{secretName: ([\w-]+)/g)].map(([, name]) => name);
    const known = [...ofClusters, ...made, ...generated];
    expect([...hosts, ...needed].filter((name) => !known.includes(name ?? ''))).toEqual([]);
    // A values file with a store of backups makes backups.
    for (const { metadata } of clusters.filter(({ spec }) => spec.plugins !== undefined))
      expect(
        objects.filter(({ kind, spec }) => kind === 'ScheduledBackup' && spec.cluster.name === metadata.name),
      ).toHaveLength(1);
    const database = objects.find(({ kind }) => kind === 'Database');
    expect([database.spec.name, database.spec.cluster.name]).toEqual(['temporal_visibility', 'temporal-postgresql']);
    const { default: store, visibility } = parse(
      examples.find((one) => findFile(one) === 'temporal-values.yaml') ?? '',
      {
        merge: true,
      },
    ).server.config.persistence.datastores;
    expect([store.sql.databaseName, visibility.sql.databaseName]).toEqual(['temporal', database.spec.name]);
    expect(store.sql.connectAddr).toBe('temporal-postgresql-rw.temporal.svc:5432');
  });

  it('makes Argo CD prune old Jobs, and Flux wait as long as a migration is retried', () => {
    const documents = examples.flatMap((one) =>
      parseAllDocuments(one, { merge: true }).map((document) => document.toJS() as Manifest),
    );
    const of = (kind: string) => documents.find((one) => one.kind === kind);
    const { metadata, spec: application } = of('Application');
    const { spec: release } = of('HelmRelease');
    expect(application.syncPolicy.automated.prune).toBe(true);
    const [source, other] = application.sources;
    expect(source.helm.valueFiles).toEqual([`$${other.ref}/us-values.yaml`]);
    for (const folder of [source.path, release.chart.spec.chart])
      expect(path.resolve(chart, '../..', folder)).toBe(chart);
    for (const name of [metadata.name, source.helm.releaseName, release.releaseName]) expect(name).toBe('us');
    expect(application.destination.namespace).toBe('org-api-us');
    expect(release.chart.spec.sourceRef.name).toBe(of('GitRepository').metadata.name);
    // Kubernetes waits 10 s after the first failure and doubles the wait up to 6 minutes.
    const { backoffLimit } = pick(renderGuide(), 'Job').spec;
    const waits = Array.from({ length: backoffLimit }, (_, before) => Math.min(10 * 2 ** before, 360));
    expect(release.timeout).toMatch(/^\d+m$/);
    expect(Number.parseInt(release.timeout, 10) * 60).toBeGreaterThan(waits.reduce((sum, wait) => sum + wait, 0));
  });

  it('stops and starts every writer when a backup is restored', () => {
    const restore = findPage('restore-a-backup.md');
    const scaled = listCommands(restore).filter((command) => command.includes(' scale '));
    const names = ofKind([...render(), ...renderOperator()], 'Deployment').map(({ metadata }) =>
      metadata.name.replace('us-org-api', '$NAME'),
    );
    expect(names).toHaveLength(4);
    const started = names.filter((name) => name !== 'operator'); // Helm starts it: it has no autoscaler
    for (const [replicas, expected] of [[0, names] as const, [2, started] as const]) {
      const commands = scaled.filter((command) => command.endsWith(`--replicas=${replicas}`)).join(' ');
      for (const name of expected) expect(commands).toContain(`deployment/${name} `);
    }
    expect(listCommands(restore).filter((command) => command.startsWith('helm upgrade'))).toHaveLength(3);
    for (const also of ["platform's own application", 'argocd', 'helmrelease']) expect(restore.text).toContain(also);
  });

  it('points the files of release, operator and orgctl at a restored cluster', () => {
    const folder = temporaryFolder();
    const tls = additions.find((one) => one.includes('postgresql-ca')) ?? '';
    const files = {
      'us-values.yaml': merged(values, parse(tls, { merge: true })),
      'operator-values.yaml': operatorValues,
      'orgctl.yaml': parse(examples.find((one) => findFile(one) === 'orgctl.yaml') ?? ''),
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), stringify(content));
    const command = listBlocks(findPage('restore-a-backup.md'), 'sh')
      .flatMap((block) => block.split('\n'))
      .find((line) => line.startsWith('sed '));
    execFileSync('bash', ['-c', command ?? ''], { cwd: folder });
    const texts = Object.keys(files).map((name) => readFileSync(path.join(folder, name), 'utf8'));
    const [ofRelease = '', ofOperator = ''] = texts;
    expect(ofRelease.match(/cnpg\.io\/cluster: org-api-us-2$/gm)).toHaveLength(1);
    expect(ofRelease.match(/secretName: org-api-us-2-ca$/gm)).toHaveLength(1); // an anchor for every app
    expect(ofOperator).toMatch(/cnpg\.io\/cluster: org-api-us-2$/m);
    expect(ofOperator).toMatch(/secretName: org-api-us-2-ca$/m);
    expect(texts.join('').replaceAll(/org-api-us-2(-ca)?$/gm, '')).not.toMatch(
      /org-api-us-2|cluster: org-api-us$|org-api-us-ca/m,
    );
    expect(ofRelease).toContain('existingSecret: org-api-us\n');
  });

  it('creates a Secret with every key that the chart mounts', () => {
    const secret = listBlocks(guide, 'sh').find((block) => block.includes('create secret generic org-api-us \\')) ?? '';
    const made = [...secret.matchAll(/--from-literal=([A-Z_]+)=/g)].map(([, key]) => key);
    const mounted = listPods(renderGuide(consoleOn)).flatMap(({ spec }) =>
      spec.volumes.flatMap(
        (volume: Manifest) => volume.projected?.sources.map((source: Manifest) => source.secret.items[0].key) ?? [],
      ),
    );
    expect(made).toEqual(expect.arrayContaining([...new Set(mounted)]));
  });

  it('runs orgctl in a pod of the release’s image that meets Pod Security "restricted"', () => {
    const pod = parse(examples.find((one) => findFile(one) === 'orgctl.yaml') ?? '');
    const [container] = pod.spec.containers;
    expect(`${values.image.repository}@${values.image.digest}`).toBe(container.image);
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.env).toContainEqual({ name: 'TEMPORAL_ADDRESS', value: values.temporal.address });
    expect(container.envFrom[0].secretRef.name).toBe(values.secrets.existingSecret);
    const urls = additions.map((one) => parse(one).console?.url).filter((url) => url !== undefined);
    expect(urls).toHaveLength(1);
    expect(container.env).toContainEqual({ name: 'CONSOLE_URL', value: urls[0] });
  });

  it('deletes the pod of orgctl before it creates it, because a pod that ended is not started again', () => {
    const commands = pages.flatMap(listCommands);
    const before = commands.filter((_, at) => commands[at + 1]?.endsWith(' -f orgctl.yaml'));
    expect(before.length).toBeGreaterThanOrEqual(4);
    expect(new Set(before)).toEqual(new Set(['kubectl -n $NS delete pod orgctl --ignore-not-found']));
  });

  it('has commands, expressions and links that exist', { timeout: 120_000 }, () => {
    const commands = listCommands(guide);
    expect(commands.length).toBeGreaterThan(40);
    const manifests = render({ values: watched });
    expect(commands.map((command) => findProblem(command, manifests)).filter(Boolean)).toEqual([]);
    expect(findProblems(listBlocks(guide, 'promql'))).toBe('');
    expect(pages.flatMap(brokenLinks)).toEqual([]);
  });

  it('continues a rotation only once every pod has the new value', { timeout: 120_000 }, () => {
    const [oldest = '', pods = ''] = listBlocks(guide, 'promql').filter((one) => one.includes('org_api_setting_read'));
    const metric = (pod: string) =>
      `org_api_setting_read_timestamp_seconds{region="us",setting="KEY_PEPPERS",pod="${pod}"}`;
    const read = { first: '0x10 1200x60', second: '0x30 1850x60' }; // the Secret changes at minute 20
    const { output, status } = promtool(['test', 'rules', 'test.json'], {
      'test.json': {
        tests: [
          {
            interval: '1m',
            input_series: Object.entries(read).map(([pod, values]) => ({ series: metric(pod), values })),
            promql_expr_test: [
              [oldest, 25, 25 * 60],
              [oldest, 40, 40 * 60 - 1_200],
              [pods, 40, 2],
            ].map(([expr, minute, value]) => ({
              expr,
              eval_time: `${minute}m`,
              exp_samples: [{ labels: '{setting="KEY_PEPPERS"}', value }],
            })),
          },
        ],
      },
    });
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('has an index that names every page, and pages that say what to expect and how to undo', () => {
    const [index, ...tasks] = pages;
    expect(tasks.length).toBeGreaterThan(10);
    for (const { file, text } of tasks) {
      expect(index?.text, file).toContain(`](../docs/operations/${path.basename(file)})`);
      expect(text, file).toMatch(/^# .+\n\n\S/); // a title, then the purpose of the page
      expect(text, file).toMatch(/^## What to expect$/m);
      expect(text, file).toMatch(/^## How to undo$/m);
    }
  });

  it('counts processors and memory like the charts', () => {
    const text = findPage('plan-capacity.md').text.replace(/\s+/g, ' ');
    const fixed = merged(consoleOn, { api: { autoscaling: { enabled: false } } });
    const renderSentence = (ofRegion: object, operator: object) => {
      const objects = [...renderGuide(merged(fixed, ofRegion) as object), ...renderOperator(operator)];
      const pods = listPods(objects).map(({ name, spec }) => ({
        count: ofKind(objects, 'Deployment').find(({ metadata }) => metadata.name === name)?.spec.replicas ?? 0,
        requests: spec.containers[0].resources.requests,
      }));
      const sum = (of: 'cpu' | 'memory', isUpgrade: boolean) =>
        pods.reduce((all, { count, requests }) => all + Number.parseInt(requests[of], 10) * (isUpgrade ? 1 : count), 0);
      const [always, more] = [false, true].map((is) => `${sum('cpu', is)}m and ${sum('memory', is)}Mi`);
      return `requests ${always}, and ${more} more`;
    };
    const small = (file: string) =>
      parse(examples.find((one) => one.startsWith(`# ${file}, also: a small node`)) ?? '') as object;
    expect(text).toContain(renderSentence({}, {}));
    expect(text).toContain(renderSentence(small('us-values.yaml'), small('operator-values.yaml')));
  });

  it('counts connections like the chart', () => {
    const [api, worker, console] = ['-api', '-worker', '-console'].map((suffix) => {
      const { env } = pick(render(), 'Deployment', suffix).spec.template.spec.containers[0];
      return Number(env.find((one: Manifest) => one.name === 'DATABASE_POOL_MAX').value);
    });
    const scaler = pick(render(), 'HorizontalPodAutoscaler', '-api');
    const others = 2 + 2 + 5; // migrations, orgctl, and the operator while it seals
    const sum = (scaler.spec.maxReplicas + 1) * (api ?? 0) + 3 * ((worker ?? 0) + 1) + 3 * (console ?? 0) + others;
    expect(guide.text).toContain(`= ${sum}, so \`max_connections\``);
  });
});

describe('SQL of guide and runbooks', () => {
  const blocks = [guide, ...readRunbooks().values()]
    .flatMap((page) => listBlocks(page, 'sql'))
    .filter((sql) => !/drop role|create database/.test(sql)); // these run below, in a server of their own

  it.each(blocks)('is valid: %s', async (sql) => {
    const { owner } = await setupDatabase();
    await owner.pool.query(sql);
  });

  it('moves all rows of the default partition to their months', async () => {
    const { owner, make } = await setupDatabase();
    const { orgId } = await make.member();
    const { rows: months } = await owner.pool.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'audit_entry'::regclass and c.relname like 'audit_entry_2%'`,
    );
    for (const { name } of months) await owner.pool.query(`drop table ${pg.escapeIdentifier(name)}`);
    await owner.pool.query(
      `insert into audit_entry (organization_id, action, at) select $1, 'test', now() - make_interval(days => n)
        from generate_series(0, 400, 20) n`,
      [orgId],
    );
    const count = async (table: string) =>
      Number((await owner.pool.query(`select count(*) from ${table}`)).rows[0].count);
    const all = await count('audit_entry');
    expect(await count('audit_entry_default')).toBe(all);
    await owner.pool.query(blocks.find((sql) => sql.includes('truncate audit_entry_default')) ?? '');
    expect(await count('audit_entry')).toBe(all);
    expect(await count('audit_entry_default')).toBeLessThan(all);
  });
});

it('an owner that may create roles and is no superuser can migrate, and create and remove second logins', {
  timeout: 120_000,
}, async () => {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'org-api-guide-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true, maxRetries: 5 }));
  const server = await startPostgres({ stateFolder, durable: false, report: () => {} });
  onTestFinished(() => server.stop());
  const url = (user: string, database = 'org_api') => {
    const own = new URL(server.adminUrl);
    Object.assign(own, { username: user, password: 'o', pathname: `/${database}` });
    return own.href;
  };
  await run(server.adminUrl, `create role managed login createrole createdb password 'o'`);
  const setUp = listBlocks(guide, 'sql').find((sql) => sql.includes('create database org_api')) ?? '';
  await run(url('managed', 'postgres'), ...setUp.replace('PASSWORD', 'o').trim().split('\n'));
  const lines: string[] = [];
  const login = (user: string) =>
    migrate({
      owner: parsePostgresUrl(url('org_api_owner')),
      logins: [{ role: 'api', server: parsePostgresUrl(url(user)) }],
      report: (line) => lines.push(line),
    });
  // Without the superuser's statements, as at a managed service, the migrations say what is open.
  await login('org_api_api');
  await run(url('org_api_api'), 'select pg_advisory_lock(1)', 'select lo_unlink(lo_create(0))');
  expect(lines.at(-1)).toContain('run the statements of docs/operations/prepare-postgresql.md');
  const superuser = new URL(server.adminUrl);
  superuser.pathname = '/org_api';
  await run(superuser.href, ...readSuperuserStatements());
  lines.length = 0;
  await login('org_api_api_2');
  expect(lines).toEqual([]);
  for (const statement of ['select pg_advisory_lock(1)', 'select lo_create(0)'])
    await expect(run(url('org_api_api'), statement)).rejects.toMatchObject({ code: '42501' });
  await run(url('org_api_api_2'), 'select from api.organization');
  await run(
    url('org_api_owner'),
    ...(listBlocks(guide, 'sql').find((sql) => sql.includes('drop role')) ?? '').trim().split('\n'),
  );
  await expect(run(url('org_api_api'), 'select 1')).rejects.toThrow();
  await run(url('org_api_api_2'), 'select from api.organization');
});

/** Returns what the guide has a superuser run in a new database. */
function readSuperuserStatements(): string[] {
  const [cluster] = parseAllDocuments(examples.find((one) => findFile(one) === 'postgresql.yaml') ?? '');
  return cluster?.toJS().spec.bootstrap.initdb.postInitApplicationSQL;
}

async function run(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Merges values as Helm merges files: maps by key, everything else replaced. */
function merged(below: unknown, above: unknown): unknown {
  const isMap = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  if (!isMap(below) || !isMap(above)) return above === undefined ? below : above;
  return Object.fromEntries(
    [...new Set([...Object.keys(below), ...Object.keys(above)])].map((key) => [key, merged(below[key], above[key])]),
  );
}
