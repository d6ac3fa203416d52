import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { hostileShell } from '#test/hostile-surroundings.ts';
import { createHttpVisitor } from '#test/http-visitor.ts';
import { allowSockets, noteOpenSockets } from '#test/socket-guard.ts';
import { type DevStack, readPaths, readStatuses, setupDevStack } from '#test/stack.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { findNoted } from '../../apps/dev/servers/process.ts';
import { installLines } from '../../apps/dev/summary.ts';
import { createStable, goldenText } from '../golden/stable.ts';

const timeout = 180_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
const control = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

describe('npm start', () => {
  it(
    'serves sample organizations, lists them in stack.json, stops cleanly, and continues with the same data and keys, also after a kill; a second one on its state is rejected',
    async () => {
      const dev = await setupDevStack({ ...hostileShell, DELIVERY_SCHEDULE: '10ms' });
      const first = await dev.start();
      expect(first.output.text).not.toMatch(control);
      expect(first.output.stdout).toMatch(/^\nReady in [\s\S]+Ctrl-C stops everything/);
      expect(first.output.stderr).toMatch(/^ +\d+\.\d s {2}us api is ready on /m);
      expect(first.output.stderr).not.toContain('Bearer');
      expect(listHostileVariables(dev.env.ORG_API_STATE)).toEqual([]);
      const { regions } = dev.stack();
      expect(regions.map(({ region }) => region)).toEqual(['us']);
      const [us] = regions as [(typeof regions)[number]];
      expect(us.organizations.length).toBeGreaterThan(0);
      await expect(goldenText(createStable()(dev.stack()))).toMatchFileSnapshot('../golden/stack.json');
      for (const { id, sampleKey } of us.organizations)
        expect(await readStatuses(us.api, id, sampleKey)).toEqual(readPaths.map(() => 200));
      const { id, sampleKey } = us.organizations[0] ?? { id: '', sampleKey: '' };
      for (const read of readPaths)
        expect(first.output.text).toContain(
          `    curl -H 'Authorization: Bearer ${sampleKey}' ${us.api}/v1/orgs/${id}${read}\n`,
        );
      for (const line of installLines) expect(first.output.text).toContain(`\n  ${line}\n`);
      const [python = ''] = /PYTHONPATH=.+/.exec(first.output.text) ?? [];
      const repository = path.join(import.meta.dirname, '../..');
      const seats = await promisify(execFile)('sh', ['-c', python], { cwd: repository });
      expect(seats.stdout).toContain("'activeFamilies': ");
      expect(readmeExample.response).toEqual({
        ...(await curl(us.api, dev.env.ORG_API_STATE)),
        createdAt: expect.stringMatching(/T05:36:03\.767Z$/),
      });
      const link = first.output.text.match(/http:\/\/localhost:\d+\/enrol#[\w-]{43}/)?.[0] ?? '';
      expect(link).toContain(`${us.console}/enrol#`);
      expect((await createHttpVisitor(us.console).openLink(link)).text).toContain('Welcome to ');
      await vi.waitFor(async () => expect(await deliveredTypes(us.receiver)).toEqual(['client.started']), 20_000);
      expect(await dev.command('apps/receiver/listen/main.ts', '--trigger', 'seat.given')).toMatchObject({ code: 0 });
      await vi.waitFor(async () => expect(await deliveredTypes(us.receiver)).toContain('seat.given'), 20_000);
      await vi.waitFor(async () => {
        const { stdout } = await dev.command('apps/orgctl/main.ts', 'ledger', '--region', 'us', '--json');
        expect(JSON.parse(stdout)).toMatchObject({ waiting: 0, difference: 0, overdue: 0 });
      }, 20_000);
      expect(await dev.command('apps/dev/create-key.ts', ...listKeyOptions(us.organizations[0]))).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^aln_us_\w+\n$/),
      });
      expect(await attemptsAtDeadReceiver(dev, us.organizations[0]?.id ?? '')).toBe(2);
      allowSockets('receivers', us.receiver);
      noteApps(dev.env.ORG_API_STATE);
      expect(await first.stop('SIGINT')).toBe(0);
      await expect(fetch(`${us.api}/livez`)).rejects.toThrow();

      const second = await dev.start();
      expect(dev.stack().regions[0]?.organizations).toEqual(us.organizations);
      expect(second.output.text).toContain('imported before');
      const rejected = await dev.command('apps/dev/main.ts');
      expect(rejected).toMatchObject({ code: 1, stderr: expect.stringContaining('Another npm start') });
      await second.stop('SIGKILL');

      const third = await dev.start();
      expect(dev.stack().regions[0]?.organizations).toEqual(us.organizations);
      const { api } = dev.stack().regions[0] as (typeof regions)[number];
      expect(await readStatuses(api, id, sampleKey)).toEqual(readPaths.map(() => 200));
      expect(await third.stop('SIGTERM')).toBe(0);
    },
    timeout,
  );

  it('three at once: of two on one state one is rejected, and what has its own state serves its own data', async () => {
    const dev = await setupDevStack();
    const other = await setupDevStack({ ORG_API_PORT: dev.env.ORG_API_PORT });
    const outcomes = await Promise.all(
      [dev, dev, other].map(async (each) => {
        const launched = each.launch();
        return launched.ready.then(
          () => null,
          ({ message }: Error) => message,
        );
      }),
    );
    const isRejected = (message: string | null = null) => /Another npm start \(process \d+\)/.test(message ?? '');
    const [first = null, second = null, ofOther = null] = outcomes;
    expect([first, second].filter(isRejected)).toHaveLength(1);
    const rest: [DevStack, string | null][] = [
      [dev, isRejected(first) ? second : first],
      [other, ofOther],
    ];
    expect(rest.map(([, message]) => message)).toEqual([null, null]);
    for (const [each] of rest) {
      const [us] = each.stack().regions as [ReturnType<DevStack['stack']>['regions'][number]];
      for (const { id, sampleKey } of us.organizations.slice(0, 1))
        expect(await readStatuses(us.api, id, sampleKey)).toEqual(readPaths.map(() => 200));
    }
  }, 120_000);

  it('leaves no server running when another one cannot be used', async () => {
    const dev = await setupDevStack({ DATABASE_URL: `postgres://127.0.0.1:${await getFreePort()}/none` });
    expect(await dev.command('apps/dev/main.ts')).toMatchObject({ code: 1 });
    for (const server of ['redis', 'temporal']) {
      const note = path.join(dev.env.ORG_API_STATE, server, 'server.pid');
      expect([server, readFileSync(note, 'utf8'), findNoted(note)]).toEqual([
        server,
        expect.stringMatching(/^\d+ /),
        null,
      ]);
    }
  });

  it('rejects an invalid call in one sentence', async () => {
    const dev = await setupDevStack();
    expect(await dev.command('apps/dev/main.ts', '--regions', 'eu')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('eu is not a region'),
    });
    expect(await dev.command('apps/dev/main.ts', '--data', 'missing.json')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not a file'),
    });
    expect(await dev.command('apps/dev/main.ts', '--quick')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--quick'),
    });
    const key = await dev.command('apps/dev/create-key.ts', '--region', 'us', '--revoke', 'x');
    expect(key).toMatchObject({ code: 1, stderr: expect.stringContaining('`npm start` starts one') });
  });
});

/** Options of a sample organization's key. */
const listKeyOptions = (organization?: { id: string; ownerUserId: string }) =>
  organization === undefined
    ? []
    : ['--region', 'us', '--org', organization.id, '--creator', organization.ownerUserId, '--scopes', 'org.read'];

/** Returns the processes that serve a state folder, where Linux shows them. */
function findServing(folder: string): string[] {
  if (process.platform !== 'linux') return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    const line = readProcess(pid, 'cmdline').join(' ');
    return line.includes(folder) && !line.includes('apps/dev/main.ts');
  });
}

/** Tells the guard of connections where the apps of a state folder are connected to now. */
function noteApps(folder: string): void {
  const apps = findServing(folder).flatMap((pid) => {
    const [, app] = /\/apps\/(\w+)\/main\.ts$/.exec(readProcess(pid, 'cmdline')[1] ?? '') ?? [];
    return app === undefined ? [] : [{ app, pid: Number(pid) }];
  });
  if (process.platform === 'linux')
    expect(apps.map(({ app }) => app).sort()).toEqual(['api', 'console', 'receiver', 'worker']);
  for (const { app, pid } of apps) {
    const settings = readProcess(String(pid), 'environ').map((entry) => entry.split(/=(.*)/s).slice(0, 2));
    noteOpenSockets(app, pid, Object.fromEntries(settings));
  }
}

/** Lists what the processes of a state folder have of the hostile shell. */
function listHostileVariables(folder: string): string[] {
  const children = findServing(folder);
  // Four apps, Redis and Temporal; PostgreSQL may be elsewhere.
  if (process.platform === 'linux') expect(children.length).toBeGreaterThan(5);
  const hostile = new Set(Object.entries(hostileShell).map(([name, value]) => `${name}=${value}`));
  return children.flatMap((pid) => readProcess(pid, 'environ').filter((entry) => hostile.has(entry)));
}

function readProcess(pid: string, file: 'cmdline' | 'environ'): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
  } catch {
    return []; // it ended meanwhile
  }
}

/** README's curl line with its response. */
const readmeExample = (() => {
  const readme = readFileSync('README.md', 'utf8');
  const [, line = '', response = ''] = /```sh\n(curl .*)\n```\n\n```json\n([^`]*)```/.exec(readme) ?? [];
  return { line, response: JSON.parse(response) };
})();

/** Runs README's curl line on a stack of another port and folder; returns the parsed answer. */
async function curl(api: string, stateFolder: string) {
  const line = readmeExample.line.replace('http://127.0.0.1:8080', api).replace('.org-api', stateFolder);
  const { stdout } = await promisify(execFile)('sh', ['-c', `${line} --silent --show-error --fail`]);
  return JSON.parse(stdout);
}

/**
 * Attempts after which a delivery to a closed port has failed: one more than the schedule has
 * waits.
 */
async function attemptsAtDeadReceiver(dev: DevStack, organizationId: string): Promise<number> {
  const orgctl = async (...args: string[]) => {
    const { stdout, stderr } = await dev.command('apps/orgctl/main.ts', ...args, '--region', 'us', '--json');
    return JSON.parse(stdout || stderr);
  };
  const url = `http://127.0.0.1:${await getFreePort()}/`;
  const { id } = await orgctl('webhook', 'create', '--org', organizationId, '--url', url, '--types', 'seat.given');
  const caused = await dev.command('apps/receiver/listen/main.ts', '--trigger', 'seat.given', '--org', organizationId);
  expect(caused).toMatchObject({ code: 0 });
  const failed = async () => orgctl('delivery', 'list', '--webhook', id, '--state', 'exhausted');
  await vi.waitFor(async () => expect(await failed()).toHaveLength(1), 30_000);
  const [{ eventId }] = await failed();
  const { attempts } = await orgctl('delivery', 'show', '--webhook', id, '--event', eventId);
  return attempts.length;
}

/** The posts that the sample receiver has received and verified. */
async function deliveredTypes(receiver: string): Promise<string[]> {
  const { deliveries } = (await (await fetch(`${receiver}/deliveries`)).json()) as {
    deliveries: { type: string; verified: boolean }[];
  };
  return deliveries.filter(({ verified }) => verified).map(({ type }) => type);
}
