/**
 * `npm run bench -- platform`: calls of the platform's functions, beside the same changes of tables by
 * the owner. README.md in this folder describes the measurement.
 */
import { randomUUID } from 'node:crypto';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { readWhole, startCommand } from '#runtime/command-line.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import { asOwner, type BenchServers, startServers } from '../servers.ts';

const { rounds, rows } = startCommand({
  usage: [
    'Usage: npm run bench -- platform [--rounds N] [--rows N]',
    "Measures calls of the platform's functions beside changes of tables.",
  ].join('\n\n'),
  read() {
    const { rounds, rows } = parseArgs({
      options: { rounds: { type: 'string', default: '20' }, rows: { type: 'string', default: '200' } },
    }).values;
    return { rounds: readWhole('--rounds', rounds, 10_000), rows: readWhole('--rows', rows, 100_000) };
  },
});

/** The statements of a change: of `$1`, an organization, and each id of the array `$2`. */
const changes = [
  {
    name: 'put_family',
    call: `select platform.put_family($1, id, 'Family') from unnest($2::uuid[]) as x (id)`,
    table: `insert into family (organization_id, id, name) select $1, id, 'Family' from unnest($2::uuid[]) as x (id)`,
  },
  {
    name: 'start_grant',
    call: `select platform.start_grant($1, id, 'attorney', 'usr_bench', id) from unnest($2::uuid[]) as x (id)`,
    table: `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
      select $1, id, 'attorney', 'usr_bench', id, now() from unnest($2::uuid[]) as x (id)`,
  },
  {
    name: 'end_grant',
    call: 'select platform.end_grant($1, id) from unnest($2::uuid[]) as x (id)',
    table: `update client_grant set status = 'ended', end_reason = 'ended', ends_at = clock_timestamp()
      where organization_id = $1 and id = any ($2)`,
  },
] as const;
type Change = (typeof changes)[number];
type Way = 'call' | 'table';
const ways = ['call', 'table'] as const;
/** One statement and commit for each row, and one for all of them. */
const sizes = [1, rows] as const;

/** Returns rows a second of each round, by change, way and rows of a statement. */
async function measure(clients: Record<Way, pg.Client>, organization: string): Promise<Map<string, number[]>> {
  const measured = new Map<string, number[]>();
  for (let round = -1; round < rounds; round += 1) {
    // In turn, so that other work on the machine affects both.
    const order = round % 2 === 0 ? ways : ways.toReversed();
    const figures = await runRound(clients, organization, order);
    // Caches are cold in the first.
    if (round >= 0) for (const [name, each] of figures) measured.set(name, [...(measured.get(name) ?? []), each]);
  }
  return measured;
}

async function runRound(clients: Record<Way, pg.Client>, organization: string, order: readonly Way[]) {
  const figures: [name: string, perSecond: number][] = [];
  for (const size of sizes) {
    const ids = { call: makeIds(), table: makeIds() };
    for (const change of changes)
      for (const way of order) {
        const name = getName(change, way, size);
        const startedAt = performance.now();
        for (let first = 0; first < rows; first += size) {
          const values = [organization, ids[way].slice(first, first + size)];
          await clients[way].query({ name, text: change[way], values });
        }
        figures.push([name, (rows * 1_000) / (performance.now() - startedAt)]);
      }
  }
  return figures;
}

const makeIds = () => Array.from({ length: rows }, () => randomUUID());
const getName = ({ name }: Change, way: Way, size: number) => `${name} ${way} ${size}`;

/** Returns the upper quartile: other work on the machine only makes it slower. */
function getQuartile(values: readonly number[] = []): number {
  return values.toSorted((a, b) => b - a)[Math.floor(values.length / 4)] ?? Number.NaN;
}

function print(measured: Map<string, number[]>): void {
  for (const size of sizes) {
    console.log(`\n${size === 1 ? 'A commit for each row' : `${rows} rows a commit`}, rows a second`);
    console.log(`${''.padEnd(14)}${'function'.padStart(10)}${'table'.padStart(10)}   ratio`);
    for (const change of changes) {
      const [call = 0, table = 0] = ways.map((way) => getQuartile(measured.get(getName(change, way, size))));
      const cells = [call, table].map((value) => Math.round(value).toLocaleString('en').padStart(10));
      console.log(`${change.name.padEnd(14)}${cells.join('')}   ${(call / table).toFixed(2)}`);
    }
  }
}

async function openRegion(servers: BenchServers): Promise<{ clients: Record<Way, pg.Client>; organization: string }> {
  await asOwner(servers.postgres.adminUrl, (admin) => admin.query('create database bench template template0'));
  const url = new URL(servers.postgres.adminUrl);
  url.pathname = 'bench';
  const owner = parsePostgresUrl(url.href);
  const ownerUrl = url.href;
  Object.assign(url, { username: 'bench_platform', password: 'bench' });
  await migrate({ owner, logins: [{ role: 'platform', server: parsePostgresUrl(url.href) }] });
  const connect = async (connectionString: string) => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    servers.onStop(() => client.end());
    return client;
  };
  const clients = { call: await connect(url.href), table: await connect(ownerUrl) };
  const organization = randomUUID();
  await clients.call.query(`select platform.put_organization($1, 'Bench', 'bench', 'law_firm')`, [organization]);
  await clients.call.query(`select platform.put_member($1, 'usr_bench', 'Ada', 'ada@example.org', '{owner}')`, [
    organization,
  ]);
  return { clients, organization };
}

console.log(`Node ${process.version}, ${cpus().length} cores, everything on this machine`);
const stop = await startServers(console.log, async (servers) => {
  const { clients, organization } = await openRegion(servers);
  print(await measure(clients, organization));
  return servers.stop;
});
await stop();
