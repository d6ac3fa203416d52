/** `npm run bench|tool -- NAME [options]`: runs one of many programs that have no script of their own. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { startCommand } from '#runtime/command-line.ts';

interface Program {
  /** Its file and what comes before the caller's arguments. */
  readonly run: readonly [file: string, ...args: string[]];
  readonly summary: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const vitest = 'node_modules/vitest/vitest.mjs';

export const subcommands: Readonly<Record<string, Readonly<Record<string, Program>>>> = {
  bench: {
    reads: { run: ['test/bench/reads/main.ts'], summary: 'the nine reads, beside Fastify and wrk' },
    deliveries: { run: ['test/bench/deliveries/main.ts'], summary: 'latency, throughput and isolation of deliveries' },
    growth: { run: ['test/bench/growth/main.ts'], summary: 'reads, deliveries and pages with large tables' },
    platform: { run: ['test/bench/platform/main.ts'], summary: 'functions of the platform, beside changes of tables' },
  },
  tool: {
    docs: {
      run: ['docs/generate/main.ts'],
      summary: 'writes docs/configuration.md, tables of docs/platform.md and the index of the decisions',
    },
    openapi: { run: ['apps/api/openapi/write.ts'], summary: 'writes apps/api/openapi/openapi.json' },
    clients: { run: ['apps/clients/generate/main.ts'], summary: 'writes the generated files of the clients' },
    'import-schema': { run: ['apps/import/write-schema.ts'], summary: 'writes apps/import/import-1.schema.json' },
    charts: { run: ['charts/docs/main.ts'], summary: 'writes schemas and READMEs of the charts and custom resources' },
    pictures: {
      run: [vitest, 'run', '--project', 'long', 'test/console/pictures'],
      summary: 'takes the pictures of the documents in docs/pictures',
      environment: { PICTURES: 'docs/pictures' },
    },
    guarantees: {
      run: [vitest, 'list', '--no-static-parse', '--project', 'quick', '--project', 'system'],
      summary: 'prints every guarantee: the names of all tests',
    },
    security: { run: ['test/security/main.ts'], summary: 'proves the properties of SECURITY.md, and attacks' },
    migrate: { run: ['apps/migrate/main.ts'], summary: 'migrates a database' },
    listen: { run: ['apps/receiver/listen/main.ts'], summary: 'receives events on your machine, and verifies them' },
    certify: { run: ['apps/receiver/certify/main.ts'], summary: 'tries a receiver, and says what it does wrong' },
    image: { run: ['charts/image/build.ts'], summary: 'builds the image' },
    release: { run: ['charts/release/main.ts'], summary: 'builds what a release publishes' },
    cluster: { run: ['test/cluster/kubernetes/main.ts'], summary: 'a Kubernetes of one node, for the cluster test' },
    chaos: { run: ['test/chaos/main.ts'], summary: 'proves that no event is lost while everything is killed' },
    receivers: {
      run: [vitest, 'run', '--config', 'test/signature-libraries/vitest.config.ts'],
      summary: 'verifies deliveries in five languages',
    },
    long: { run: [vitest, 'run', '--project', 'long'], summary: 'the tests that take minutes' },
  },
};

const [group = '', name = '', ...rest] = process.argv.slice(2);
if (import.meta.main) await run(group, name, rest);

/** Replaces this program: the other one reads its arguments as if it had been started by itself. */
async function run(group: string, name: string, args: readonly string[]): Promise<void> {
  const program = subcommands[group]?.[name];
  if (program === undefined) return reject(group, name);
  const [file, ...before] = program.run;
  const absolute = path.join(import.meta.dirname, '../..', file);
  Object.assign(process.env, program.environment);
  process.argv.splice(1, process.argv.length, absolute, ...before, ...args);
  await import(pathToFileURL(absolute).href);
}

function reject(group: string, name: string): void {
  const lines = Object.entries(subcommands[group] ?? {}).map(([each, { summary }]) => `  ${each.padEnd(14)}${summary}`);
  startCommand({
    usage: `Usage: npm run ${group} -- NAME [options]\n\n${lines.join('\n')}`,
    read: () => {
      throw new Error(name === '' ? 'Choose one of these.' : `${name} is none of these.`);
    },
  });
}
