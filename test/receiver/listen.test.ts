import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { changeTypes } from '#domain/contract/events.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { makeCertificate } from '#test/certificates.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { type options, readOptions } from '../../apps/receiver/listen/options.ts';
import { verificationText, verifyFile } from '../../apps/receiver/listen/verify-file.ts';
import { runListen, setupStack, startTarget } from './listen.ts';

/** A delivery of org-api, posted to the tool's URL. */
async function deliver(url: string, secret: string, type = 'client.started', more: Record<string, string> = {}) {
  const id = randomUUID();
  const body = `{"id":"${id}","type":"${type}","note":"é  spaces stay"}`;
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const headers = {
    ...signatureHeaders({ id, timestampSeconds, body, secrets: [secret] }),
    'Content-Type': 'application/json',
    'webhook-attempt': '2',
    'User-Agent': 'org-api-webhooks/1.0',
    ...more,
  };
  return { id, body, headers, response: await fetch(url, { method: 'POST', headers, body }) };
}

/** A port on which nothing listens. */
async function findFreePort(): Promise<number> {
  const server = createNetServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('npm run tool -- listen --forward-to URL --secret S', () => {
  it('forwards events unchanged, returns the response, and prints both', async () => {
    const secret = generateSecret();
    const target = await startTarget({ status: 503, headers: { 'Retry-After': '7' }, body: 'not now' });
    const captured = temporaryFolder();
    const listen = runListen(['--forward-to', target.url, '--secret', secret, '--capture', captured]);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);

    const { id, body, headers, response } = await deliver(url, secret);

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(await response.text()).toBe('not now');
    const [came] = target.came;
    expect(came?.path).toBe('/mine?x=1');
    expect(came?.body.toString()).toBe(body);
    for (const [name, value] of Object.entries(headers)) expect(came?.headers[name.toLowerCase()], name).toBe(value);
    expect(came?.rawHeaders.filter((name) => name.toLowerCase() === 'host')).toHaveLength(1);
    await listen.says(new RegExp(`client\\.started  ${id}  attempt 2  verified  -> 503 in \\d+ ms`));
    expect(listen.output.text).not.toContain(secret);

    const [file = ''] = readdirSync(captured);
    const verify = runListen(['--verify', path.join(captured, file), '--secret', secret]);
    expect(await verify.ended).toBe(0);
    expect(verify.output.text).toContain('It verifies.');
    expect(await listen.stop()).toBe(0);
  });

  it('prints no control characters, whatever an event contains, and nothing but errors on standard error', async () => {
    const listen = runListen(['--forward-to', 'http://127.0.0.1:1/', '--secret', generateSecret()], {
      FORCE_COLOR: '1',
    });
    const [, url = ''] = await listen.says(/Listening at (\S+)/);
    const headers = { 'webhook-id': 'a\u009bb', 'webhook-attempt': '\u00851' };
    await fetch(url, { method: 'POST', headers, body: JSON.stringify({ type: '\u001b[2J\r\u0007cleared' }) });
    await listen.says(/cleared/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
    expect(listen.output.text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
    expect(listen.output.stderr).toBe('');
  });

  it('names the check that an event fails, and forwards it nevertheless', async () => {
    const target = await startTarget({ status: 200 });
    const listen = runListen(['--forward-to', target.url, '--secret', generateSecret()]);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);

    const { response } = await deliver(url, generateSecret());

    expect(response.status).toBe(200);
    await listen.says(/NOT VERIFIED {2}-> 200[\s\S]*service_signature: [\s\S]*standard_signature: /);
    expect(target.came).toHaveLength(1);
  });

  it('prints the sequence number of an event that has one', async () => {
    const secret = generateSecret();
    const listen = runListen(['--forward-to', 'http://127.0.0.1:1/', '--secret', secret]);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);
    await deliver(url, secret, 'client.started', { 'webhook-sequence': '4711' });
    await listen.says(/client\.started {2}\S+ {2}sequence 4711 {2}attempt 2 {2}verified/);
    await deliver(url, secret, 'client.ended');
    await listen.says(/client\.ended {2}\S+ {2}attempt 2 {2}verified/);
  });

  it('forwards to an https receiver whose certificate --ca-file has signed, and to no other', async () => {
    const certificate = makeCertificate({ subject: 'receiver', names: ['127.0.0.1'], isAuthority: true });
    const came: string[] = [];
    const server = createServer(certificate, (request, response) => {
      came.push(String(request.headers['webhook-id']));
      request.resume().on('end', () => response.writeHead(204).end());
    });
    const port = await listenLocally(server);
    const secret = generateSecret();
    const folder = temporaryFolder();
    const caFile = path.join(folder, 'ca.pem');
    writeFileSync(caFile, certificate.cert);
    const target = ['--forward-to', `https://127.0.0.1:${port}/`, '--secret', secret];

    const trusting = runListen([...target, '--ca-file', caFile]);
    const [, url = ''] = await trusting.says(/Listening at (\S+)/);
    const { id, response } = await deliver(url, secret);
    expect(response.status).toBe(204);
    expect(came).toEqual([id]);

    const other = runListen(target);
    const [, otherUrl = ''] = await other.says(/Listening at (\S+)/);
    expect((await deliver(otherUrl, secret)).response.status).toBe(502);
    await other.says(
      /no response: the certificate of \S+ is not trusted \(\w+\); give the one that signed it with --ca-/,
    );
    expect(came).toEqual([id]);
  });

  it('starts the receiver of --exec with the secret and the port, and ends it with what it started', async () => {
    const secret = generateSecret();
    const port = await findFreePort();
    const program = path.join(temporaryFolder(), 'receiver.mjs');
    writeFileSync(
      program,
      `import { createServer } from 'node:http';
       createServer((request, response) => {
         console.log('receiver got', process.env.WEBHOOK_SECRET === ${JSON.stringify(secret)});
         request.resume().on('end', () => response.writeHead(204).end());
       }).listen(Number(process.env.PORT), '127.0.0.1');`,
    );
    // A child of the shell: the shell alone is not the receiver.
    const exec = `true; "${process.execPath}" "${program}"; true`;
    const listen = runListen(['--forward-to', `http://127.0.0.1:${port}/`, '--secret', secret, '--exec', exec]);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);
    expect((await deliver(url, secret)).response.status).toBe(204);
    await listen.says(/receiver got true/);
    expect(await listen.stop()).toBe(0);
    await expect.poll(() => fetch(`http://127.0.0.1:${port}/`).catch(() => 'nothing listens')).toBe('nothing listens');
  });

  it('ends with exit code 1 when the receiver of --exec ends before it listens', async () => {
    const port = await findFreePort();
    const target = `http://127.0.0.1:${port}/`;
    const listen = runListen(['--forward-to', target, '--secret', generateSecret(), '--exec', 'exit 3']);
    expect(await listen.ended).toBe(1);
    expect(listen.output.text).toContain(`The receiver ended with status 3. It never listened on 127.0.0.1:${port}.`);
  });

  it('answers 502 when nothing listens at the URL, and says so', async () => {
    const secret = generateSecret();
    const listen = runListen(['--forward-to', 'http://127.0.0.1:1/', '--secret', secret]);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);

    expect((await deliver(url, secret)).response.status).toBe(502);
    await listen.says(/verified {2}-> no response: nothing listens at 127\.0\.0\.1:1; start your receiver/);
  });
});

describe('npm run tool -- listen on a development stack', () => {
  it('adds a webhook for the requested events, prints its secret, and deletes it at the end', async () => {
    const { env, owner, orgId } = await setupStack();
    const target = await startTarget({ status: 204 });
    const args = ['--forward-to', target.url, '--events', 'client.started,seat.given', '--trigger', 'seat.given'];
    const listen = runListen(args, env);
    const [, secret = ''] = await listen.says(/Its signing secret while this runs: (whsec_\S+)/);
    const [, url = ''] = await listen.says(/Listening at (\S+)/);
    await listen.says(/Caused client\.started, then seat\.given/);

    const webhooks = () =>
      owner.pool.query<{ state: string; url: string; event_types: string[]; owed: number }>(
        `select w.state, w.url, w.event_types, (select count(*)::int from delivery d where d.webhook_id = w.id) as owed
         from webhook w where organization_id = $1`,
        [orgId],
      );
    expect((await webhooks()).rows).toEqual([
      { state: 'active', url, event_types: ['client.started', 'seat.given'], owed: 2 },
    ]);
    await deliver(url, secret);
    await listen.says(/verified {2}-> 204/);

    expect(await listen.stop()).toBe(0);
    expect((await webhooks()).rows).toMatchObject([{ state: 'deleted' }]);
  });

  it('needs no receiver: shows an event that it causes, answers 204, and keeps listening', async () => {
    const { env } = await setupStack();
    const captured = temporaryFolder();
    const listen = runListen(['--trigger', 'client.started', '--capture', captured], env);
    const [, secret = ''] = await listen.says(/Its signing secret while this runs: (whsec_\S+)/);
    const [, url = ''] = await listen.says(/Listening at (\S+) and answering 204\. Ctrl-C stops it\./);
    await listen.says(/Caused client\.started/);
    const { id, response } = await deliver(url, secret);
    expect(response.status).toBe(204);
    await listen.says(new RegExp(`client\\.started  ${id}  attempt 2  verified  -> 204`));
    expect(readdirSync(captured)).toEqual(['0001-client.started.http']);
    expect(await listen.stop()).toBe(0);

    const bare = runListen([], env);
    await bare.says(/sends client\.started, .* here\.[\s\S]*Listening at \S+ and answering 204/);
    expect(await bare.stop()).toBe(0);
  });

  it('keeps the secret of --secret-file from one run to the next, and prints it at none', async () => {
    const { env } = await setupStack();
    const file = path.join(temporaryFolder(), 'webhook-secret');
    const secrets: string[] = [];
    for (const run of ['first', 'second']) {
      const listen = runListen(['--forward-to', 'http://127.0.0.1:1/', '--secret-file', file], env);
      const [, url = ''] = await listen.says(/Listening at (\S+)/);
      const secret = readFileSync(file, 'utf8').trim();
      secrets.push(secret);
      await deliver(url, secret);
      await listen.says(/ verified {2}-> no response/);
      expect(listen.output.text, run).not.toContain(secret);
      expect(await listen.stop()).toBe(0);
    }
    expect(secrets[0]).toBe(secrets[1]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('deletes the webhook of a killed predecessor when it starts', async () => {
    const { env, owner } = await setupStack();
    const first = runListen(['--forward-to', 'http://127.0.0.1:1/'], env);
    await first.says(/Listening at/);
    await first.kill();
    const second = runListen(['--forward-to', 'http://127.0.0.1:1/'], env);
    await second.says(/Listening at/);

    const { rows } = await owner.pool.query('select state from webhook order by created_at');
    expect(rows).toEqual([{ state: 'deleted' }, { state: 'active' }]);
  });

  it('rejects a type that no call of the platform causes, and says who sends it', async () => {
    const listen = runListen(['--trigger', 'key.expiring'], {});
    expect(await listen.ended).toBe(2);
    expect(listen.output.text).toMatch(/no call of the platform causes key\.expiring; .* the console sends\s+test/);
  });

  it('causes each event type by a real change, as the platform, as often as it is given', async () => {
    const { env, owner, orgId } = await setupStack();
    await owner.pool.query('update seat_plan set invoiced = 0'); // also when no seat is left
    const args = [...changeTypes, 'client.ended', 'seat.ended'].flatMap((type) => ['--trigger', type]);
    const listen = runListen(args, env);

    expect(await listen.ended).toBe(0);

    const caused = [...listen.output.text.matchAll(/^Caused (.*) by changing the data of Harbor Family Law\.$/gm)];
    expect(caused.map(([, types]) => types)).toEqual([
      'client.started',
      'client.ended',
      'client.started, then seat.given',
      'seat.ended',
      'client.ended',
      'client.started, then seat.given, then seat.ended',
    ]);
    const { rows } = await owner.pool.query(
      'select type, count(*)::int from event where organization_id = $1 group by type order by type',
      [orgId],
    );
    expect(rows).toEqual([
      { type: 'client.ended', count: 2 },
      { type: 'client.started', count: 3 },
      { type: 'seat.ended', count: 2 },
      { type: 'seat.given', count: 2 },
    ]);
  });

  it('changes only the database of a development stack', async () => {
    const { env, owner } = await setupStack({ development: false });
    const listen = runListen(['--trigger', 'client.started'], env);
    expect(await listen.ended).toBe(1);
    expect(listen.output.text).toContain('is not a development stack');
    expect((await owner.pool.query('select from event')).rowCount).toBe(0);
  });
});

describe('npm run tool -- listen --verify FILE', () => {
  const secret = generateSecret();
  const body = '{"id":"3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10","type":"client.started","name":"é"}';
  const id = '3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10';
  const headersAt = (ageSeconds: number) =>
    signatureHeaders({ id, timestampSeconds: Math.floor(Date.now() / 1000) - ageSeconds, body, secrets: [secret] });
  const message = (headers: Record<string, string>, end: string, text = body) => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return ['POST /hooks HTTP/1.1', ...fields, '', text].join(end);
  };

  function verify(content: string, toleranceSeconds = 300) {
    const file = path.join(temporaryFolder(), 'captured');
    writeFileSync(file, content);
    const verification = verifyFile({ file, secrets: [secret], toleranceSeconds });
    return { ok: verification.ok, text: verificationText(verification) };
  }

  it.each([
    ['as it came over the wire', message(headersAt(0), '\r\n')],
    ['as an editor saved it', message(headersAt(0), '\n')],
    ['as JSON', JSON.stringify({ headers: headersAt(0), body })],
  ])('verifies a request %s', (_form, content) => {
    const { ok, text } = verify(content);
    expect(text).toMatch(/^(ok .*\n)+\nIt verifies\.$/);
    expect(ok).toBe(true);
  });

  it('names each failed check, without the secret', () => {
    const { ok, text } = verify(message(headersAt(600), '\r\n', body.replace('é', 'e')));
    expect(ok).toBe(false);
    for (const check of ['timestamp_within_tolerance', 'service_signature', 'standard_signature'])
      expect(text).toMatch(new RegExp(`^FAILED {2}${check} `, 'm'));
    expect(text).toMatch(/The delivery does not verify: 3 of \d checks failed/);
    expect(text).not.toContain(secret);

    expect(verify(message(headersAt(600), '\r\n'), 900).ok).toBe(true);
  });

  it('takes the secret from --secret-file, and names what is wrong with one', async () => {
    const folder = temporaryFolder();
    const [file, secretFile] = [path.join(folder, 'captured'), path.join(folder, 'secret')];
    writeFileSync(file, message(headersAt(0), '\r\n'));
    writeFileSync(secretFile, `${secret}\n`);
    expect(await runListen(['--verify', file, '--secret-file', secretFile]).ended).toBe(0);
    writeFileSync(secretFile, `\ufeff${secret}`);
    const wrong = runListen(['--verify', file, '--secret-file', secretFile]);
    expect(await wrong.ended).toBe(2);
    expect(wrong.output.text).toMatch(/--secret-file: the secret in \S+ has a byte order mark\./);
    expect(wrong.output.text).not.toContain(secret.slice(6));
  });

  it('explains what is wrong with the file', () => {
    const options = { secrets: [secret], toleranceSeconds: 300 };
    expect(() => verifyFile({ ...options, file: '/nonexistent/file' })).toThrow(/cannot be read \(ENOENT\)/);
    expect(() => verifyFile({ ...options, file: 'package.json' })).toThrow(/contains no request/);
  });

  it('ends with exit code 1 when it does not verify', async () => {
    const file = path.join(temporaryFolder(), 'captured');
    writeFileSync(file, message(headersAt(0), '\r\n', `${body} `));
    const run = runListen(['--verify', file, '--secret', secret]);
    expect(await run.ended).toBe(1);
    expect(run.output.text).toContain('FAILED');
  });
});

describe('an invalid call of npm run tool -- listen', () => {
  it.each([
    [['--verify', 'x'], /needs --secret/],
    [['--forward-to', 'localhost:3000'], /give an http:\/\/ or https:\/\/ URL/],
    [['--forward-to', 'http://127.0.0.1:1', '--events', 'a'], /a is not an event type; use client\.started/],
    [['--secret', 'whsec_x', '--forward-to', 'http://127.0.0.1:1'], /copy the whole one/],
    [['--forward-to', 'http://127.0.0.1:1', '--region', 'eu'], /use us or ca/],
    [['--forward-to', 'http://127.0.0.1:1', '--org', 'x'], /a UUID/],
    [['--forward-to', 'http://127.0.0.1:1', '--port=-1'], /a port/],
    [['--port', '1', '--port', '2'], /--port is given more than once/],
    [['--what'], /Unknown option '--what'/],
  ])('is rejected with one sentence: %j', (args, sentence) => {
    expect(() => readOptions(args)).toThrow(sentence);
  });

  // --capture without --forward-to kept nothing and said nothing.
  const secret = generateSecret();
  const ofReceiver = ['exec', 'ca-file'];
  it.each([
    [[], ['verify', 'tolerance', ...ofReceiver]],
    [
      ['--forward-to', 'http://127.0.0.1:1'],
      ['verify', 'tolerance', 'ca-file'],
    ],
    [
      ['--forward-to', 'https://127.0.0.1:1'],
      ['verify', 'tolerance'],
    ],
    [
      ['--trigger', 'client.ended'],
      ['verify', 'tolerance', ...ofReceiver],
    ],
    [
      ['--secret', secret],
      ['tolerance', 'secret-file', ...ofReceiver, 'events', 'org', 'region'],
    ],
    [
      ['--secret', secret, '--trigger', 'client.ended'],
      ['verify', 'tolerance', 'secret-file', ...ofReceiver, 'events'],
    ],
    [
      ['--secret', secret, '--verify', 'captured'],
      ['secret-file', 'forward-to', ...ofReceiver, 'events', 'org', 'region', 'port', 'capture', 'trigger'],
    ],
  ])('is %j with an option that would be ignored; every other option changes what is done', (call, expected) => {
    const given: Record<keyof typeof options, string> = {
      verify: 'captured',
      tolerance: '60',
      secret: generateSecret(),
      'secret-file': 'file',
      'forward-to': 'https://127.0.0.1:2',
      exec: 'command',
      'ca-file': 'file',
      events: 'client.started',
      org: randomUUID(),
      region: 'us',
      port: '3000',
      capture: 'folder',
      trigger: 'client.started',
    };
    for (const [name, value] of Object.entries(given)) {
      if (call.includes(`--${name}`)) continue;
      const read = () => readOptions([...call, `--${name}`, value]);
      if (expected.includes(name)) expect(read, name).toThrow(/^--[a-z-]+ (needs|has no effect with) --/);
      else expect(read(), name).not.toEqual(readOptions(call));
    }
  });

  it('exits with code 2 and a reference to the help, without a stack trace', async () => {
    const wrong = runListen(['--tolerance', '1']);
    const help = runListen(['--help']);
    expect(await wrong.ended).toBe(2);
    expect(wrong.output.text).toContain('See npm run tool -- listen --help');
    expect(wrong.output.text).not.toMatch(/\n\s+at /);
    expect(await help.ended).toBe(0);
    expect(help.output.text).toContain('--forward-to URL');
  });

  it('explains what to do without a stack', async () => {
    const none = runListen(['--forward-to', 'http://127.0.0.1:1']);
    expect(await none.ended).toBe(1);
    expect(none.output.text).toContain('run npm start first, or give --secret');
  });
});
