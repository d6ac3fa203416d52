/** What sign-in connects to: the database, and nothing that a response names. */
import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import dns from 'node:dns/promises';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentPasskey } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { addPasskey, listFactors, startPasskey } from '#domain/identity/factors.ts';
import { type Attestation, array, bytes, createAuthenticator, number, signAssertion } from '#test/authenticator.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { listOpenSockets } from '#test/open-sockets.ts';
import { goodPassword, settings, setupPeople, visitor } from '#test/people.ts';
import { allowSockets, checkChildren, guardSockets, watchSockets } from '#test/socket-guard.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { certifiedBy } from './certified-passkey.ts';

const party = settings.relyingParty;

/** A server that counts its requests. */
async function startCounter() {
  let requests = 0;
  const server: Server = createServer((_request, response) => {
    requests += 1;
    response.end();
  });
  return { url: `http://127.0.0.1:${await listenLocally(server)}/list.crl`, requests: () => requests };
}

describe('a new passkey with a certificate', () => {
  it('is rejected at enrolment with a sentence, and no server that the certificate names gets a request', async () => {
    const t = await setupPeople();
    const named = await startCounter();
    const member = await t.make.member();
    const input = { organizationId: member.orgId, email: `${member.userId}@example.org`, by: 'orgctl' } as const;
    const { token } = await createEnrolment(t.owner, input, t.now);
    await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
    const { challenge } = await startEnrolmentPasskey(t.db, token, party, t.now);
    const response = createAuthenticator().register(challenge, { attest: certifiedBy(named.url) });
    const done = completeEnrolment(t.db, { token, factor: { kind: 'passkey', response }, visitor }, settings, t.now);
    await expect(done).rejects.toMatchObject({
      reason: 'passkey_attested',
      message: expect.stringContaining('or an authenticator app'),
    });
    expect(named.requests()).toBe(0);
  });

  it('is rejected as a further factor, in each place of a statement that may hold one', async () => {
    const t = await setupPeople();
    const session = await t.session((await t.enrol()).token);
    const named = await startCounter();
    const chain = (value: Buffer): Attestation => ({ format: 'packed', statement: [['x5c', value]] });
    const attests = [
      certifiedBy(named.url),
      () => chain(array([bytes(Buffer.alloc(20))])),
      () => chain(array([])),
      () => ({ format: 'none', statement: [['response', bytes(Buffer.from('a.b.c'))]] }) satisfies Attestation,
      () => ({ format: 'tpm', statement: [['certInfo', bytes(Buffer.alloc(9))]] }) satisfies Attestation,
    ];
    for (const attest of attests) {
      const { challenge } = await startPasskey(t.db, session, party, t.now);
      const response = createAuthenticator().register(challenge, { attest });
      const added = addPasskey(t.db, session, { response, name: 'Phone', visitor }, party, t.now);
      await expect(added).rejects.toMatchObject({ reason: 'passkey_attested' });
    }
    expect(named.requests()).toBe(0);
    expect((await listFactors(t.db, session)).factors.length).toBe(1);
  });
});

it('a new passkey that signs itself, as some browsers send although none was requested, is added', async () => {
  const t = await setupPeople();
  const session = await t.session((await t.enrol()).token);
  const { challenge } = await startPasskey(t.db, session, party, t.now);
  const response = createAuthenticator().register(challenge, {
    attest: ({ privateKey, authData, clientDataHash }) => ({
      format: 'packed',
      statement: [
        ['alg', number(-7)],
        ['sig', bytes(signAssertion(privateKey, authData, clientDataHash))],
      ],
    }),
  });
  await addPasskey(t.db, session, { response, name: 'Phone', visitor }, party, t.now);
  expect((await listFactors(t.db, session)).factors.map(({ name }) => name)).toContain('Phone');
});

it('a new passkey whose attestation or transports are of any other kind is rejected or added, never an error', async () => {
  const t = await setupPeople();
  const session = await t.session((await t.enrol()).token);
  const nested = Buffer.concat([Buffer.alloc(10_000, 0x81), Buffer.from([0])]).toString('base64url');
  const wrong: object[] = ['', 'oA', 'AA', nested, 7, null, { a: 1 }].map((attestationObject) => ({
    attestationObject,
  }));
  for (const change of [
    ...wrong,
    { clientDataJSON: 7 },
    { transports: 'usb' },
    { transports: [{ toString: 1 }, 'nfc\0'] },
  ]) {
    const { challenge } = await startPasskey(t.db, session, party, t.now);
    const credential = createAuthenticator().register(challenge);
    const response = { ...credential, response: { ...credential.response, ...change } };
    const reason = await addPasskey(t.db, session, { response, name: 'Phone', visitor }, party, t.now).then(
      () => 'added',
      (error: { reason?: string }) => error.reason,
    );
    expect(reason, JSON.stringify(change).slice(0, 60)).toBe(
      'transports' in change ? 'added' : 'clientDataJSON' in change ? 'setup_expired' : 'wrong_passkey',
    );
  }
});

it('the guard of a process rejects what SECURITY.md does not list for it, and accepts what it lists', async () => {
  const { url } = await startCounter();
  allowSockets('receivers', url);
  const visit = async (app: string) => {
    const ends: (() => void)[] = [];
    guardSockets((end) => void ends.push(end), app);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.destroy();
    for (const end of ends) end();
  };
  await visit('worker');
  for (const app of ['api', 'console', 'identity'])
    await expect(visit(app)).rejects.toThrow(`tcp ${new URL(url).host}`);
  expect(() => guardSockets(() => {}, 'receiver')).toThrow('SECURITY.md does not list what receiver may connect to');
});

it('the guard of a separate process rejects what SECURITY.md does not list for its app, also when it was killed', async () => {
  const { url } = await startCounter();
  allowSockets('receivers', url);
  const root = temporaryFolder();
  const dies = `() => process.kill(process.pid, 'SIGKILL')`;
  const code = `require('node:net').connect(${new URL(url).port}, '127.0.0.1', ${dies})`;
  const run = async (file: string) => {
    const program = path.join(root, file);
    mkdirSync(path.dirname(program), { recursive: true });
    writeFileSync(program, code);
    await once(spawn(process.execPath, [program], { env: childEnvironment }), 'close');
    checkChildren();
  };
  await run('apps/worker/main.ts');
  await run('test/worker/part-child.ts');
  for (const folder of ['api', 'console', 'orgctl', 'migrate'])
    for (const file of [`apps/${folder}/main.ts`, `test/${folder}/part-child.ts`])
      await expect(run(file)).rejects.toThrow(`tcp ${new URL(url).host}`);
});

it.runIf(process.platform === 'linux')('the guard sees where native code of a process is connected to', async () => {
  const { url } = await startCounter();
  const { port } = new URL(url);
  const child = spawn('bash', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${port}; echo connected; read`], { stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(listOpenSockets(child.pid ?? 0)).toEqual([`tcp 127.0.0.1:${port}`]);
  expect(listOpenSockets(process.pid)).not.toContainEqual(expect.stringMatching(`:${port}$`)); // it accepted it
});

it('the guard of these tests sees connections, lookups and UDP of every library', async () => {
  const { url } = await startCounter();
  const watch = watchSockets();
  onTestFinished(watch.end);
  await fetch(url);
  const raw = connect(Number(new URL(url).port), '127.0.0.1');
  await new Promise((resolve) => raw.once('connect', resolve));
  raw.destroy();
  const name = 'metadata.invalid';
  for (const lookup of [dns.lookup, dns.resolve4]) await lookup(name).catch(() => {});
  const socket = dgram.createSocket('udp4');
  await new Promise((resolve) => socket.send('x', 9, '127.0.0.1', resolve));
  socket.close();
  const { rejected, targets } = watch.list(new Set());
  expect(rejected.length).toBe(targets.length);
  expect(targets).toEqual([
    ...Array(2).fill(`tcp 127.0.0.1:${new URL(url).port}`),
    `lookup ${name}`,
    `dns ${name}`,
    expect.stringMatching(/^udp/),
  ]);
});
