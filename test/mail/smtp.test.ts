/** What a mail server may answer, against real servers: whose fault it is, and what is logged of it. */
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeCertificate } from '#test/certificates.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { smtpReply, startMailServer } from '#test/mail-server.ts';
import { classifyFailure, trySend } from '../../apps/worker/mail/smtp.ts';

const message = {
  from: { name: 'Org', address: 'no-reply@mail.example.org' },
  to: { name: '', address: 'ada@example.org' },
  subject: 'Hello\r\nBcc: other@example.org',
  text: 'Hello.',
};
const never = new AbortController().signal;
/** Not the address of the test's own host: TLS is required there. */
const remote = '127.0.0.2';
const authority = makeCertificate({ subject: 'Test authority', isAuthority: true });
const certificate = makeCertificate({ subject: 'mail', names: [remote], issuer: authority });
const tls = { key: certificate.key, cert: certificate.cert };

const attempt = (url: string, authorities: string | null = null) =>
  trySend({ url: new URL(url), authorities }, message, never);

/** Starts a server that answers each line as a script says. Returns its URL. */
async function startScriptedServer(host: string, answer: (line: string) => string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('220 mail\r\n');
    socket.on('data', (lines) => socket.write(`${answer(lines.toString())}\r\n`));
  });
  await new Promise<void>((listening) => server.listen(0, host, listening));
  onTestFinished(() => void server.close());
  return `smtp://${host}:${(server.address() as AddressInfo).port}`;
}

describe('TLS', () => {
  it('is required of a server on another host: without STARTTLS nothing is sent', async () => {
    const server = await startMailServer({ host: remote });
    expect(await attempt(server.url)).toMatchObject({ outcome: 'misconfigured' });
    expect(server.mails).toEqual([]);
  });

  it('needs a certificate of a trusted authority, by STARTTLS and from the start', async () => {
    const server = await startMailServer({ host: remote, ...tls });
    const secure = await startMailServer({ host: remote, secure: true, ...tls });
    for (const url of [server.url, secure.url.replace('smtp:', 'smtps:')]) {
      expect(await attempt(url)).toEqual({ outcome: 'misconfigured', reply: 'TLS' });
      expect(await attempt(url, authority.cert)).toMatchObject({ outcome: 'sent' });
    }
    expect([...server.mails, ...secure.mails]).toHaveLength(2);
  });

  it('needs a certificate of the name that is configured', async () => {
    const other = makeCertificate({ subject: 'mail', names: ['mail.example.org'], issuer: authority });
    const server = await startMailServer({ host: remote, key: other.key, cert: other.cert });
    expect(await attempt(server.url, authority.cert)).toEqual({ outcome: 'misconfigured', reply: 'TLS' });
    expect(server.mails).toEqual([]);
  });

  it('needs a server that speaks it, and a version that is not too old', async () => {
    const plain = await startMailServer({ host: remote });
    expect(await attempt(plain.url.replace('smtp:', 'smtps:'))).toEqual({ outcome: 'misconfigured', reply: 'TLS' });
    const old = await startMailServer({
      host: remote,
      secure: true,
      ...tls,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1',
    });
    const url = old.url.replace('smtp:', 'smtps:');
    expect(await attempt(url, authority.cert)).toEqual({ outcome: 'misconfigured', reply: 'TLS' });
  });

  it('is not needed on the own host', async () => {
    const server = await startMailServer();
    expect(await attempt(server.url)).toMatchObject({ outcome: 'sent' });
  });
});

describe('a reply', () => {
  it.each([
    [
      'a temporary one about the recipient is of this mail',
      'recipient',
      450,
      '4.2.2 Mailbox full',
      'later',
      '450 4.2.2',
    ],
    ['421 after the message is of this mail', 'message', 421, '4.7.0 Try later', 'later', '421 4.7.0'],
    ['an unknown recipient is final', 'recipient', 550, '5.1.1 No such user ada', 'rejected', '550 5.1.1'],
    ['a rejected message is final', 'message', 554, '5.6.0 No', 'rejected', '554 5.6.0'],
    ['a policy against the recipient is none about the address', 'recipient', 554, '5.7.1 No', 'blocked', '554 5.7.1'],
    ['a policy against the message is none about it', 'message', 550, '5.7.26 DMARC', 'blocked', '550 5.7.26'],
    // Regression: these texts were taken for a wrong certificate, which paused all mail.
    ['an address of alert@ is final', 'recipient', 550, '<alert@example.org> unknown', 'rejected', '550'],
    ['a mailbox certificates@ is full', 'recipient', 452, '4.2.2 certificates@ full', 'later', '452 4.2.2'],
    ['a message about altnames is final', 'message', 554, '5.6.0 self signed altnames', 'rejected', '554 5.6.0'],
  ] as const)('%s', async (_name, where, code, text, outcome, reply) => {
    const server = await startMailServer();
    if (where === 'recipient') server.rules.onRecipient = () => smtpReply(code, text);
    else server.rules.onMessage = async () => smtpReply(code, text);
    expect(await attempt(server.url)).toEqual({ outcome, reply });
  });

  it('to the sign-in is of the settings when it is final, and of the server when it is temporary', async () => {
    let code = 535;
    const server = await startMailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: (_auth, _session, done) => done(smtpReply(code, code === 535 ? '5.7.8 Wrong password' : '4.7.0 Later')),
    });
    const url = server.url.replace('smtp://', 'smtp://user:secret@');
    expect(await attempt(url)).toEqual({ outcome: 'misconfigured', reply: '535 5.7.8' });
    code = 454;
    expect(await attempt(url)).toEqual({ outcome: 'unavailable', reply: '454 4.7.0' });
  });

  it('to STARTTLS is of the settings when it is final, and no fault of TLS', async () => {
    const lines = (reply: string) => (line: string) =>
      line.startsWith('EHLO') ? '250-mail\r\n250 STARTTLS' : line.startsWith('STARTTLS') ? reply : '250 OK';
    const tryReply = (reply: string) => startScriptedServer(remote, lines(reply)).then(attempt);
    expect(await tryReply('502 5.5.1 certificate')).toEqual({ outcome: 'misconfigured', reply: '502 5.5.1' });
    expect(await tryReply('454 4.7.0 TLS alert')).toEqual({ outcome: 'unavailable', reply: '454 4.7.0' });
  });

  it('to the sender is of the settings', async () => {
    const server = await startMailServer({ onMailFrom: (_from, _session, done) => done(smtpReply(550, '5.1.8 Who?')) });
    expect(await attempt(server.url)).toEqual({ outcome: 'misconfigured', reply: '550 5.1.8' });
  });

  it('that never comes is a server that is unavailable', { timeout: 120_000 }, async () => {
    expect((await attempt('smtp://127.0.0.1:1')).outcome).toBe('unavailable');
    const port = await listenLocally(createServer());
    const startedMs = performance.now();
    expect((await attempt(`smtp://127.0.0.1:${port}`)).outcome).toBe('unavailable');
    // After 10 s: the loop sends nothing else meanwhile.
    expect(performance.now() - startedMs).toBeLessThan(20_000);
  });

  it('is recorded by its codes alone, whatever its text repeats', () => {
    const failure = { code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550 };
    for (const response of ['550 5.1.1 <ada@example.org>', '550-5.1.1 ada', '550 ada@example.org', 'ada', ''])
      expect(classifyFailure({ ...failure, response }).reply).toMatch(/^(550( 5\.1\.1)?)$/);
    for (const code of ['EDNS', 'e:ada@example.org', ''])
      expect(classifyFailure({ code }).reply).toMatch(/^[A-Z0-9_]{1,30}$/);
  });
});

it('keeps one recipient, and one header, whatever a subject contains', async () => {
  const server = await startMailServer();
  await attempt(server.url);
  const [mail] = server.mails;
  expect(mail?.to).toBe('ada@example.org');
  expect(mail?.raw.toLowerCase()).not.toMatch(/^bcc:/m);
});
