/** The operators' guide: its values render, its commands exist, its SQL runs, and a PostgreSQL as it describes takes the migrations. Issue 5, point 8. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { migrate } from '#domain/db/migrate.ts';
import { setupDatabase } from '#test/setup.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { problemOf } from './commands.ts';
import { blocksOf, brokenLinks, commandsOf, readPage, readRunbooks } from './documents.ts';
import { problemsOf, watched } from './promtool.ts';
import { chart, type Manifest, pick, podsOf, render } from './render.ts';

const guide = readPage(path.resolve(chart, '../README.md'));
const examples = blocksOf(guide, 'yaml');
const fileOf = (example: string) => /^# ([\w.-]+)/.exec(example)?.[1];
const isAddition = (example: string) => example.split('\n')[0]?.includes(', also') === true;
const values = parse(examples.find((one) => fileOf(one) === 'us-values.yaml' && !isAddition(one)) ?? '', {
  merge: true,
});
const additions = examples.filter((one) => fileOf(one) === 'us-values.yaml' && isAddition(one));
const renderGuide = (more: object = {}) =>
  render({ region: null, release: 'us', values: merged(values, more) as object });

describe('the guide', () => {
  it('has values with which the chart renders, alone and with each addition', () => {
    expect(podsOf(renderGuide()).length).toBe(3);
    expect(additions.length).toBe(4);
    for (const addition of additions)
      expect(podsOf(renderGuide(parse(addition, { merge: true }))).length, addition).toBeGreaterThan(2);
  });

  it('asks every app and the migrations for TLS to PostgreSQL', () => {
    const tls = additions.find((one) => one.includes('PGSSLMODE')) ?? '';
    for (const { name, spec } of podsOf(renderGuide(parse(tls, { merge: true })))) {
      expect(spec.containers[0].env, name).toContainEqual({ name: 'PGSSLMODE', value: 'verify-full' });
      expect(spec.volumes.map((one: Manifest) => one.name)).toContain('postgresql-ca');
    }
  });

  it('opens the network policies towards the servers that it sets up', () => {
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

  it('makes a Secret with every key that the chart mounts', () => {
    const secret = blocksOf(guide, 'sh').find((block) => block.includes('create secret generic org-api-us \\')) ?? '';
    const made = [...secret.matchAll(/--from-literal=([A-Z_]+)=/g)].map(([, key]) => key);
    const mounted = podsOf(renderGuide({ console: { enabled: true, url: 'https://console.us.example.com' } })).flatMap(
      ({ spec }) =>
        spec.volumes.flatMap(
          (volume: Manifest) => volume.projected?.sources.map((source: Manifest) => source.secret.items[0].key) ?? [],
        ),
    );
    expect(made).toEqual(expect.arrayContaining([...new Set(mounted)]));
  });

  it('gives orgctl a pod of the release’s image that meets Pod Security "restricted"', () => {
    const pod = parse(examples.find((one) => fileOf(one) === 'orgctl.yaml') ?? '');
    const [container] = pod.spec.containers;
    expect(`${values.image.repository}@${values.image.digest}`).toBe(container.image);
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.env).toContainEqual({ name: 'TEMPORAL_ADDRESS', value: values.temporal.address });
    expect(container.envFrom[0].secretRef.name).toBe(values.secrets.existingSecret);
  });

  it('has commands, expressions and links that exist', { timeout: 120_000 }, () => {
    const commands = commandsOf(guide);
    expect(commands.length).toBeGreaterThan(40);
    expect(commands.map((command) => problemOf(command, render({ values: watched }))).filter(Boolean)).toEqual([]);
    expect(problemsOf(blocksOf(guide, 'promql'))).toBe('');
    expect(brokenLinks(guide)).toEqual([]);
  });

  it('counts connections as the chart gives them', () => {
    const [api, worker, console] = ['-api', '-worker', '-console'].map((suffix) => {
      const { env } = pick(render(), 'Deployment', suffix).spec.template.spec.containers[0];
      return Number(env.find((one: Manifest) => one.name === 'DATABASE_POOL_MAX').value);
    });
    const scaler = pick(render(), 'HorizontalPodAutoscaler', '-api');
    const sum = (scaler.spec.maxReplicas + 1) * (api ?? 0) + 3 * ((worker ?? 0) + 2) + 3 * (console ?? 0) + 4;
    expect(guide.text).toContain(`= ${sum}, so \`max_connections\``);
  });
});

describe('SQL of guide and runbooks', () => {
  const pages = [guide, ...readRunbooks().values()];
  const blocks = pages.flatMap((page) => blocksOf(page, 'sql')).filter((sql) => !sql.includes('drop role'));

  it.each(blocks)('runs: %s', async (sql) => {
    const { owner } = await setupDatabase();
    await owner.pool.query(sql);
  });

  it('moves the lines of the default partition to their months, every one of them', async () => {
    const { owner, make } = await setupDatabase();
    const { orgId } = await make.member();
    const { rows: months } = await owner.pool.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'activity'::regclass and c.relname like 'activity_2%'`,
    );
    for (const { name } of months) await owner.pool.query(`drop table ${pg.escapeIdentifier(name)}`);
    await owner.pool.query(
      `insert into activity (organization_id, action, at) select $1, 'test', now() - make_interval(days => n) from generate_series(0, 400, 20) n`,
      [orgId],
    );
    const count = async (table: string) =>
      Number((await owner.pool.query(`select count(*) from ${table}`)).rows[0].count);
    const all = await count('activity');
    expect(await count('activity_default')).toBe(all);
    await owner.pool.query(blocks.find((sql) => sql.includes('truncate activity_default')) ?? '');
    expect(await count('activity')).toBe(all);
    expect(await count('activity_default')).toBeLessThan(all);
  });
});

it('an owner that may create roles and is no superuser migrates, makes second logins, and takes first ones away', {
  timeout: 120_000,
}, async () => {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'org-api-guide-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true, maxRetries: 5 }));
  const server = await startPostgres({ stateFolder, durable: false, report: () => {} });
  onTestFinished(() => server.stop());
  await run(
    server.adminUrl,
    `create role org_api_owner login createrole password 'o'`,
    'create database org_api owner org_api_owner',
  );
  const url = (user: string) => {
    const own = new URL(server.adminUrl);
    Object.assign(own, { username: user, password: 'o', pathname: '/org_api' });
    return own.href;
  };
  const login = (user: string) =>
    migrate({ ownerUrl: url('org_api_owner'), logins: [{ role: 'api', url: url(user) }] });
  await login('org_api_api');
  await login('org_api_api_2');
  await run(url('org_api_api_2'), 'select from api.organization');
  await run(
    url('org_api_owner'),
    ...(blocksOf(guide, 'sql').find((sql) => sql.includes('drop role')) ?? '').trim().split('\n'),
  );
  await expect(run(url('org_api_api'), 'select 1')).rejects.toThrow();
  await run(url('org_api_api_2'), 'select from api.organization');
});

async function run(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Values on top of values, as Helm merges files: maps by key, all else replaced. */
function merged(below: unknown, above: unknown): unknown {
  const isMap = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  if (!isMap(below) || !isMap(above)) return above === undefined ? below : above;
  return Object.fromEntries(
    [...new Set([...Object.keys(below), ...Object.keys(above)])].map((key) => [key, merged(below[key], above[key])]),
  );
}
