/**
 * `npm run bench:console`: compares pages of an organization with few rows and one with many.
 * README.md in this folder describes the measurement.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { openDatabase } from '#domain/db/connect.ts';
import { startCommand } from '#runtime/command-line.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { cookieName } from '../../../apps/console/web/cookies.ts';
import { asOwner } from '../servers.ts';
import { type FilledOrganization, fillOrganization, preparePast, signIn } from './fill.ts';
import { endVisits, quantile, visit } from './measure.ts';
import { type MeasuredPage, pages } from './pages.ts';
import { type BenchStack, startStack } from './stack.ts';

const options = startCommand({
  usage: [
    'Usage: npm run bench:console -- [--quick]',
    'Compares pages of an organization with few rows and one with many.',
  ].join('\n\n'),
  read: () => parseArgs({ options: { quick: { type: 'boolean' } } }).values,
});

const few = { lines: 10, deliveries: 10 };
const many = options.quick ? { lines: 100_000, deliveries: 1_000 } : { lines: 1_000_000, deliveries: 10_000 };
const rounds = options.quick ? 15 : 60;
const warmUpRounds = 5;
/** Approximate bytes of a row in the file. */
const bytesPerLine = 246;

const say = (line: string) => console.log(line);
const number = (value: number) => value.toLocaleString('en');

interface Measured {
  few: number[];
  many: number[];
}

type Size = keyof Measured;

/**
 * Each round requests every page once in each organization, in turn, so that other work on the
 * machine affects both.
 */
async function measurePages(stack: BenchStack, cookie: string, organizations: Record<Size, FilledOrganization>) {
  const measured = new Map<MeasuredPage, Measured>(pages.map((page) => [page, { few: [], many: [] }]));
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    const order: Size[] = round % 2 === 0 ? ['few', 'many'] : ['many', 'few'];
    for (const [page, times] of measured)
      for (const size of order) {
        const firstByteMs = await measure(stack, cookie, page, organizations[size]);
        if (round >= 0) times[size].push(firstByteMs);
      }
  }
  return measured;
}

async function measure(stack: BenchStack, cookie: string, page: MeasuredPage, organization: FilledOrganization) {
  const url = `${stack.origin}/o/${organization.id}${page.path(organization)}`;
  const { status, firstByteMs } = await visit(url, cookie, { firstByteOnly: page.name.startsWith('CSV') });
  if (status !== 200) throw new Error(`${page.name} was answered ${status}`);
  return firstByteMs;
}

function print(measured: Map<MeasuredPage, Measured>): void {
  const head = ['few p50', 'p95', 'many p50', 'p95', 'many / few'].map((text) => text.padStart(11)).join('');
  say(`\n${'ms to the first byte'.padEnd(36)}${head}`);
  for (const [{ name }, times] of measured) {
    const cells = [times.few, times.many].flatMap((each) => [0.5, 0.95].map((share) => quantile(each, share)));
    const ratio = quantile(times.many, 0.5) / quantile(times.few, 0.5);
    say(`${name.padEnd(36)}${[...cells, ratio].map((value) => value.toFixed(2).padStart(11)).join('')}`);
  }
}

/**
 * Downloads the whole log. Prints the maximum memory after each fifth of it, which must not grow.
 */
async function measureFile(stack: BenchStack, cookie: string, large: FilledOrganization): Promise<void> {
  const memory = [process.memoryUsage.rss()];
  const fifth = (many.lines * bytesPerLine) / 5;
  const onBytes = (bytes: number) => {
    const at = Math.min(5, Math.floor(bytes / fifth) + 1);
    memory[at] = Math.max(memory[at] ?? 0, process.memoryUsage.rss());
  };
  const startedAt = performance.now();
  const { bytes } = await visit(`${stack.origin}/o/${large.id}/activity/csv`, cookie, { onBytes });
  const seconds = (performance.now() - startedAt) / 1000;
  const megabytes = (value: number) => (value / 2 ** 20).toFixed(0);
  say(
    `\nthe whole log as CSV: ${number(many.lines)} lines, ` +
      `${megabytes(bytes)} MB in ${seconds.toFixed(1)} s (${number(Math.round(many.lines / seconds))} lines/s)`,
  );
  say(
    `memory of server and reader, one process: ${memory.map(megabytes).join(', ')} MB (before, ` +
      'then the most in each fifth of the file)',
  );
}

async function fill(stack: BenchStack) {
  const database = await openDatabase({
    server: parsePostgresUrl(stack.ownerUrl),
    applicationName: 'bench',
    poolMax: 2,
  });
  try {
    return await asOwner(stack.ownerUrl, async (owner) => {
      await preparePast(owner);
      const small = await fillOrganization(owner, database, stack.config, few);
      const large = await fillOrganization(owner, database, stack.config, many);
      // Autovacuum does this some time after that many rows.
      await owner.query('vacuum analyze');
      return { small, large, session: await signIn(database, [small.id, large.id], stack.config) };
    });
  } finally {
    await database.close();
  }
}

async function main(): Promise<void> {
  say(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`);
  const stack = await startStack((line) => say(`  ${line}`));
  try {
    const { small, large, session } = await fill(stack);
    say(
      `  ${number(many.lines)} lines and ${number(many.deliveries)} deliveries beside ${few.lines} and ` +
        `${few.deliveries}`,
    );
    await stack.serve();
    const cookie = `${cookieName('session', stack.origin)}=${session}`;
    print(await measurePages(stack, cookie, { few: small, many: large }));
    await measureFile(stack, cookie, large);
  } finally {
    endVisits();
    await stack.stop();
  }
}

await main();
