import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { makeCertificate } from '#test/certificates.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { certify } from '../../apps/receiver/certify/certify.ts';
import { readOptions } from '../../apps/receiver/certify/options.ts';
import { Probe } from '../../apps/receiver/certify/probe.ts';
import { reportText } from '../../apps/receiver/certify/report.ts';
import { scenarios } from '../../apps/receiver/certify/scenarios.ts';
import { readStateAt, type State } from '../../apps/receiver/certify/state.ts';
import { type Fault, faults, lateMs, startFaultyReceiver } from './faulty-receiver.ts';
import { setupReceiver } from './setup.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Found by waiting for what never comes. */
const foundLate: readonly unknown[] = ['answers-in-time', 'reports-state'];

/** Certifies a receiver with two secrets that reports these members; the names of the scenarios are by result. */
async function certifyFaulty(fault: Fault | null, members: (keyof State)[] | null = ['events', 'grants', 'seats']) {
  const secrets = [generateSecret(), generateSecret()];
  const { url } = await startFaultyReceiver(secrets, fault);
  const readState = readStateAt({ url: `${url}/state`, ca: null });
  const report = await certify({
    target: { url: `${url}/hooks`, ca: null },
    secrets,
    organizationId: randomUUID(),
    endpoint: randomUUID(),
    deadlineMs: fault !== null && foundLate.includes(faults[fault]) ? lateMs / 3 : 10_000,
    readState:
      members === null
        ? null
        : async (question) => {
            const state = Object.entries(await readState(question));
            return Object.fromEntries(state.filter(([name]) => members.includes(name as keyof State)));
          },
  });
  const names = (result: string) => report.scenarios.filter((each) => each.result === result).map(({ name }) => name);
  return { report, failed: names('failed'), notJudged: names('notJudged'), passed: names('passed') };
}

/** The scenarios that only the state shows. */
const needState = [
  'applies-repeat-once',
  'applies-simultaneous-repeat-once',
  'forged-event-blocks-nothing',
  'keeps-ended-client-ended',
  'orders-by-created-at',
  'orders-within-millisecond',
  'keeps-seats-apart',
  'keeps-clients-and-seats-apart',
  'ignores-test-event',
];

describe('npm run tool -- certify', () => {
  it('passes a receiver that does all that it has to', async () => {
    const { report, passed } = await certifyFaulty(null);
    expect(report.scenarios.filter(({ result }) => result !== 'passed')).toEqual([]);
    expect(passed).toHaveLength(scenarios.length);
    expect(report.ok).toBe(true);
  });

  it.each(Object.entries(faults) as [Fault, string][])('finds a receiver that %s', async (fault, expected) => {
    const { report, failed } = await certifyFaulty(fault);
    expect(failed).toContain(expected);
    expect(report.ok).toBe(false);
    const found = report.scenarios.find(({ name }) => name === expected);
    expect(found).toMatchObject({
      found: expect.stringMatching(/^\S.*\.$/),
      why: expect.any(String),
      fix: expect.any(String),
    });
  });

  it('has a fault for every scenario but the first, which finds a receiver that accepts nothing', () => {
    expect(new Set(Object.values(faults))).toEqual(new Set(scenarios.slice(1).map(({ name }) => name)));
  });

  it('has about thirty scenarios, as the pages say', () => {
    expect(Math.round(scenarios.length / 10)).toBe(3);
  });

  it('does not judge without the state what only the state shows, and does not fail it', async () => {
    const { report, notJudged } = await certifyFaulty('keeps no order', null);
    expect(notJudged).toEqual(['reports-state', ...needState]);
    expect(report.ok).toBe(true);
  });

  it.each(Object.keys(faults).filter((fault) => faults[fault as Fault] === 'reports-state') as Fault[])(
    'finds once that a receiver %s, and judges nothing else by its state',
    async (fault) => {
      const { report, failed, notJudged } = await certifyFaulty(fault);
      expect(failed).toEqual(['reports-state']);
      expect(notJudged).toEqual(needState);
      const text = reportText(report);
      expect(text.match(/--state-url reports nothing that it accepted: see reports-state\./g)).toHaveLength(1);
      for (const name of needState) expect(text.split(/[\s,]+/)).toContain(name);
    },
  );

  it('names the member that a state does not have', async () => {
    const { report } = await certifyFaulty('keeps no order', ['events']);
    const reasons = Map.groupBy(
      report.scenarios.filter(({ result }) => result === 'notJudged'),
      ({ found }) => found,
    );
    expect([...reasons].map(([reason, all]) => [reason, all.length])).toEqual([
      ['--state-url reports no grants.', 4],
      ['--state-url reports no seats.', 1],
    ]);
    expect(report.ok).toBe(true);
  });

  it('judges no rejection by a receiver that accepts nothing', async () => {
    const secrets = [generateSecret()];
    const { url } = await startFaultyReceiver([generateSecret()], null);
    const options = { organizationId: randomUUID(), endpoint: randomUUID(), deadlineMs: 10_000, readState: null };
    const report = await certify({ ...options, target: { url, ca: null }, secrets });
    const { scenarios: judged } = report;
    expect(reportText(report).match(/It accepts no event/g)).toHaveLength(1);
    const counts = Object.groupBy(judged, ({ result }) => result);
    expect(counts.failed?.map(({ name }) => name)).toEqual(['accepts-event']);
    expect(counts.passed?.map(({ name }) => name)).toEqual([
      'answers-in-time',
      'answers-no-redirect',
      'answers-no-410',
    ]);
  });

  it('says what it read of the state when that is wrong, and where', async () => {
    const { report } = await certifyFaulty('keeps no order');
    const found = report.scenarios.find(({ name }) => name === 'keeps-ended-client-ended')?.found;
    expect(found).toMatch(/ is not ended: grants\.[\w-]{36} of --state-url is "active"\.$/);
    const { report: repeated } = await certifyFaulty('applies repeats');
    const times = repeated.scenarios.find(({ name }) => name === 'applies-repeat-once')?.found;
    expect(times).toMatch(/ 2 times: events\.[\w-]{36} of --state-url is 2\.$/);
  });

  it('says what it read of a state that never shows what was accepted', async () => {
    const secret = generateSecret();
    const { url } = await startFaultyReceiver([secret], null);
    const options = { organizationId: randomUUID(), endpoint: randomUUID(), target: { url, ca: null } };
    const probe = new Probe({
      ...options,
      secrets: [secret],
      deadlineMs: 200,
      readState: async () => ({ grants: {} }),
    });
    await expect(probe.state({})).rejects.toThrow(
      /^grants\.[\w-]{36} of --state-url is absent, 0\.2 s after it accepted that client\.started\.$/,
    );
  });

  it('says to read the log of a receiver that answers 5xx, and not what is wrong with its answer', async () => {
    const { report } = await certifyFaulty('fails at a seat');
    const fixes = report.scenarios.filter(({ result }) => result === 'failed').map(({ found, fix }) => [found, fix]);
    expect(fixes.length).toBeGreaterThan(1);
    for (const [found, fix] of fixes) {
      expect(found).toMatch(/^It answered 500 to /);
      expect(fix).toMatch(/^Read the receiver’s log: a 5xx is an error of its own/);
    }
    const { report: other } = await certifyFaulty('rejects repeats');
    for (const { fix } of other.scenarios) expect(fix).not.toMatch(/5xx/);
  });

  it('passes the sample receiver', async () => {
    const { receiver, secret } = await setupReceiver();
    const options = { organizationId: randomUUID(), endpoint: randomUUID(), deadlineMs: 10_000, readState: null };
    const target = { url: `${receiver.url}/hooks/harbor`, ca: null };
    const { scenarios: judged } = await certify({ ...options, target, secrets: [secret] });
    expect(judged.filter(({ result }) => result === 'failed')).toEqual([]);
  });
});

describe('a state that certify cannot use', () => {
  const id = randomUUID();
  it.each([
    [
      { grants: { [id]: 'Active' } },
      `has "Active" as grants.${id}; needed is the state of the client, "active" or "ended".`,
    ],
    [{ seats: { [id]: null } }, `has null as seats.${id}; needed is the state of the seat, "active" or "ended".`],
    [
      { events: { [id]: true } },
      `has true as events.${id}; needed is how many times the event was applied, 0 if never applied.`,
    ],
    [{ events: [id] }, `has ["${id}"] as events; needed is {"events": {"ID": 1}, "grants": {"ID": "active"}, `],
    ['<h1>Sign in</h1>', 'has "<h1>Sign in</h1>" as its body; needed is {"events": {"ID": 1}, '],
    [`"${'x'.repeat(100)}`, `has "\\"${'x'.repeat(77)}… as its body; `],
  ])('is rejected with what was read, where, and what is needed: %j', async (body, sentence) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const port = await listenLocally(createServer((_, response) => void response.end(text)));
    const url = `http://127.0.0.1:${port}/state`;
    await expect(readStateAt({ url, ca: null })({ grant: id })).rejects.toThrow(`--state-url: ${url} ${sentence}`);
  });

  it('is read over https when --ca-file has signed the certificate, and names that option otherwise', async () => {
    const certificate = makeCertificate({ subject: 'receiver', names: ['127.0.0.1'], isAuthority: true });
    const port = await listenLocally(createHttpsServer(certificate, (_, response) => void response.end('{}')));
    const url = `https://127.0.0.1:${port}/state`;
    expect(await readStateAt({ url, ca: certificate.cert })({})).toEqual({});
    await expect(readStateAt({ url, ca: null })({})).rejects.toThrow(
      /^--state-url: the certificate of \S+ is not trusted \(\w+\); give the one that signed it with --ca-file\.$/,
    );
  });

  it.each([404, 301, 500])('is rejected with its status: %d', async (status) => {
    const port = await listenLocally(createServer((_, response) => void response.writeHead(status).end('{}')));
    await expect(readStateAt({ url: `http://127.0.0.1:${port}/state`, ca: null })({})).rejects.toThrow(
      `answered ${status} instead of 200.`,
    );
  });
});

/** Runs the program to its end. */
async function runCertify(args: readonly string[]) {
  const child = spawn(process.execPath, [path.join(root, 'apps/receiver/certify/main.ts'), ...args], {
    env: { ...childEnvironment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    once(child, 'exit'),
  ]);
  return { code: code as number | null, stdout, stderr };
}

describe('the program of npm run tool -- certify', () => {
  it('exits with 0, prints a line for each scenario and no secret', async () => {
    const secret = generateSecret();
    const { url } = await startFaultyReceiver([secret], null);
    const { code, stdout, stderr } = await runCertify([url, '--secret', secret, '--state-url', `${url}/state`]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').filter((line) => line.startsWith('ok '))).toHaveLength(scenarios.length);
    expect(stdout).toContain(`${scenarios.length} passed, 0 failed, 0 not judged.`);
    expect(stdout).not.toContain(secret.slice(6));
  });

  it('exits with 1 when something failed, and prints what, why and the fix, also as JSON', async () => {
    const secret = generateSecret();
    const { url } = await startFaultyReceiver([secret], 'accepts what is old');
    const text = await runCertify([url, '--secret', secret]);
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(/^FAILED +rejects-old-timestamp .*\n +Found: It answered 204 .*\n +Why: .*\n +Fix: /m);
    const json = await runCertify([url, '--secret', secret, '--json']);
    expect(json.code).toBe(1);
    const report = JSON.parse(json.stdout);
    expect(report).toMatchObject({ url, ok: false, failed: 1 });
    expect(report.scenarios.find((each: { result: string }) => each.result === 'failed')).toMatchObject({
      name: 'rejects-old-timestamp',
      found: 'It answered 204 to an event that was signed 10 minutes ago.',
    });
  });

  it('exits with 2 when nothing answers, and for a state that cannot be read', async () => {
    const secret = generateSecret();
    const { url } = await startFaultyReceiver([secret], null);
    const nothing = await runCertify(['http://127.0.0.1:1/', '--secret', secret]);
    expect(nothing).toMatchObject({ code: 2, stderr: 'nothing listens at 127.0.0.1:1; start your receiver\n' });
    const stateUrl = `http://127.0.0.1:${await getFreePort()}/state`;
    const noState = await runCertify([url, '--secret', secret, '--state-url', stateUrl]);
    expect(noState).toMatchObject({
      code: 2,
      stderr: `--state-url: nothing listens at ${new URL(stateUrl).host}; start your receiver.\n`,
    });
  });

  it.each([
    [[], /Give the URL/],
    [['http://127.0.0.1/'], /Give the secret/],
    [['http://127.0.0.1/', '--secret', `"${generateSecret()}"`], /the secret has quotes around it/],
    [['127.0.0.1', '--secret', generateSecret()], /http:\/\/ or https:\/\//],
    [['http://127.0.0.1/', '--secret', generateSecret(), '--deadline', '0'], /--deadline/],
    [['--what'], /Unknown option '--what'/],
    [['http://127.0.0.1/', '--secret', generateSecret(), '--secret-file', 'x'], /--secret-file has no effect with/],
    [['http://127.0.0.1/', '--secret', generateSecret(), '--ca-file', 'x'], /--ca-file needs an https:\/\/ URL/],
    [['http://127.0.0.1/', '--deadline', '1', '--deadline', '2'], /--deadline is given more than once/],
  ])('rejects a wrong call with one sentence: %j', (args, sentence) => {
    expect(() => readOptions(args)).toThrow(sentence);
  });
});
