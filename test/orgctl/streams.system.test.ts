/** What every command of `orgctl` prints, whatever the shell and the database prefer. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pLimit from 'p-limit';
import { expect, it } from 'vitest';
import { eraseFamily } from '#domain/clients/erase-family.ts';
import { seal } from '#domain/encryption/envelope.ts';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { providerRow } from '#domain/identity/sso-provider.ts';
import { closedPipeCode } from '#runtime/command-line.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { hostileShell, setHostileDefaults } from '#test/hostile-surroundings.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { codeAt, goodPassword, settings, visitor } from '#test/people.ts';
import { startReceiver } from '#test/receiver.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';
import { nouns } from '../../apps/orgctl/nouns.ts';

const timeout = 300_000;
const commands = nouns.flatMap(({ noun, commands }) => commands.map(({ verb }) => [noun, verb].join(' ').trim()));
/** What a terminal obeys, and what changes the order of a text, breaks its line or hides in it. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\u115F\u2800\u3164]/u;
/** JSON keeps letters as they are. */
const unseenInJson = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const hostile =
  '\u001b]0;title\u0007\u001b[2J\r\n\t\u0085\u009b31m\u202Egnillib\u202C\u2066x\u2069\u200F\u200B\u2028\u00AD\u{E0041}\u3164';
const inParallel = pLimit(3);

/** The options of each command. */
type Calls = Record<string, () => Promise<string[]> | string[]>;

async function run(args: string[], env: Record<string, string>, isClosed = false) {
  const child = spawn(process.execPath, ['apps/orgctl/main.ts', ...args], {
    env: { ...childEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (isClosed) child.stdout.destroy();
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([isClosed ? '' : text(child.stdout), text(child.stderr)]);
  return { code: await ended, stdout, stderr };
}

it('every command works under other defaults, prints controls and overrides by name, and ends quietly without a reader', {
  timeout,
}, async () => {
  const { env, reads, writes } = await setupCalls();
  expect([...Object.keys(reads), ...Object.keys(writes)].toSorted()).toEqual(commands.toSorted());
  const all = Object.entries({ ...reads, ...writes }).map(([name, listOptions]) => async () => {
    const args = [...name.split(' '), ...(await listOptions())];
    const code = name === 'doctor' ? expect.any(Number) : 0; // the database of the tests loses commits in a crash
    const read = await run(args, env);
    expect([name, read]).toEqual([name, { code, stdout: expect.stringMatching(/./), stderr: expect.anything() }]);
    expect([name, unseen.exec(`${read.stdout}${read.stderr}`)]).toEqual([name, null]);
    if (!Object.hasOwn(reads, name)) return;
    const document = await run([...args, '--json'], env);
    expect([name, unseenInJson.exec(document.stdout)]).toEqual([name, null]);
    const left = await run([...args, '--json'], env, true);
    expect([name, left.code, /\n\s+at |EPIPE/.test(left.stderr)]).toEqual([name, closedPipeCode, false]);
  });
  await Promise.all(all.map((one) => inParallel(one)));
});

/**
 * An installation with hostile names in all that a command shows, and the options of every command.
 */
async function setupCalls() {
  const t = await setupOrgctl(hostileShell);
  const { make, owner } = t;
  await setHostileDefaults(owner.pool);
  const receiver = await startReceiver();
  receiver.respond = (response) => void response.writeHead(200).end(hostile);
  await startTestWorker(t.database);
  const { orgId, userId } = await make.member({ orgId: await make.organization({ name: `Harbor${hostile}` }) });
  await owner.pool.query('update api_key set label = $1', [hostile]);
  await owner.pool.query('update membership set name = $1', [`Ada${hostile}`]);
  const addWebhook = () =>
    make.webhook({ orgId, url: `${receiver.url}/${randomUUID()}`, description: `Cases${hostile}` });
  const webhook = await addWebhook();
  const attempt = { status: 500, explanation: hostile, response: Buffer.from(hostile), headers: { server: hostile } };
  const addDelivery = async (state: 'running' | 'exhausted') => {
    const of = await addWebhook();
    const event = await make.delivery({ webhook: of, state, attempts: [attempt] });
    return ['--webhook', of.id, '--event', event];
  };
  const addRedelivery = async () => {
    const { rows } = await owner.pool.query<{ id: string }>(
      `insert into redelivery (organization_id, webhook_id, failed_since, due_at)
       values ($1, $2, now(), now() + interval '1 day') returning id`,
      [orgId, (await addWebhook()).id],
    );
    return ['--id', rows[0]?.id ?? ''];
  };
  const addPerson = async () => {
    const email = `${randomUUID()}@example.org`;
    const { token } = await createEnrolment(owner, { organizationId: orgId, email, by: 'orgctl' });
    await setEnrolmentPassword(owner, { token, password: goodPassword });
    const { secret } = await startEnrolmentTotp(owner, token, settings);
    const factor = { kind: 'totp', code: codeAt(secret, new Date()) } as const;
    await completeEnrolment(owner, { token, factor, visitor }, settings);
    return ['--email', email];
  };
  const addFamily = () => make.family({ orgId, name: `Rossi${hostile}` });
  const erased = await eraseFamily(owner, { familyId: await addFamily(), reference: 'case-1' });
  const certificates = path.join(temporaryFolder(), 'certificates.jsonl');
  await writeFile(certificates, erased.map((certificate) => `${JSON.stringify(certificate)}\n`).join(''));
  const delivery = await addDelivery('exhausted');
  const person = await addPerson();
  await owner.pool.query('update membership set name = $1', [`Ada${hostile}`]);
  const org = ['--org', orgId];
  const ofWebhook = ['--webhook', webhook.id];
  const fresh = async () => ['--webhook', (await addWebhook()).id];
  const reads: Calls = {
    'org list': () => [],
    'org show': () => org,
    'person show': () => person,
    'webhook list': () => org,
    'webhook show': () => ofWebhook,
    'delivery list': () => delivery.slice(0, 2),
    'delivery show': () => delivery,
    'delivery switch': () => [],
    'redelivery list': () => ofWebhook,
    'redelivery show': addRedelivery,
    ledger: () => [],
    'audit-log verify': () => org,
    'mail show': async () => {
      const { rows } = await owner.pool.query<{ id: string }>(
        `insert into mail (organization_id, kind, address) values ($1, 'key.create', 'it@example.org') returning id`,
        [orgId],
      );
      return ['--mail', rows[0]?.id ?? ''];
    },
    'key list': () => org,
    'family certificate': () => ['--erasure', erased[0]?.erasureId ?? ''],
    'secrets status': () => [],
    doctor: () => [],
  };
  const providerId = randomUUID();
  await owner.pool.query(
    `insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     values ($1, $2, 'https://login.example.org', 'console', $3, true, now())`,
    [providerId, orgId, seal('client secret', providerRow(providerId), testSealingKeys)],
  );
  const writes: Calls = {
    'org sso-off': () => org,
    'person invite': () => [...org, '--email', `${randomUUID()}@example.org`, '--name', `Bo${hostile}`],
    'person confirm': async () => [...org, ...(await addPerson())],
    'person end-sessions': addPerson,
    'person change-address': async () => [...(await addPerson()), '--to', `${randomUUID()}@example.org`],
    'person free-address': addPerson,
    'webhook create': () => [...org, '--url', `${receiver.url}/${randomUUID()}`, '--types', 'seat.given'],
    'webhook change': async () => [...(await fresh()), '--types', 'seat.ended'],
    'webhook rotate': fresh,
    'webhook verify': fresh,
    'webhook test': fresh,
    'webhook pause': fresh,
    'webhook resume': fresh,
    'webhook detach': fresh,
    'webhook delete': fresh,
    'delivery redeliver': async () => [...(await addDelivery('exhausted')), '--no-wait'],
    'delivery cancel': () => addDelivery('running'),
    'redelivery cancel': addRedelivery,
    'key revoke': async () => ['--key', (await make.apiKey({ creator: { orgId, userId, roleId: null } })).id],
    'family erase': async () => ['--family', await addFamily(), '--reference', 'case-2'],
    'family erase-again': () => ['--certificates', certificates],
    'secrets reseal': () => [],
    'probe create': () => ['--url', `${receiver.url}/probe`],
  };
  return { env: t.env, reads, writes };
}
