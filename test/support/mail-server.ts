import type { AddressInfo } from 'node:net';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';
import { allowSockets } from './socket-guard.ts';

/** A message as a mail server received it, also when it rejected it. */
export interface ReceivedMail {
  to: string;
  raw: string;
  parsed: Email;
}

/** A reply other than 250. */
export const smtpReply = (responseCode: number, text: string): Error =>
  Object.assign(new Error(text), { responseCode });

/**
 * Starts a real mail server on an own port; it stops when the test ends. `onRecipient` and `onMessage`
 * may be replaced at any time: they return the rejection, or null.
 */
export async function startMailServer(options: SMTPServerOptions & { port?: number; host?: string } = {}) {
  const { port = 0, host = '127.0.0.1', ...own } = options;
  const mails: ReceivedMail[] = [];
  const rules = {
    onRecipient: (_address: string): Error | null => null,
    onMessage: async (_mail: ReceivedMail): Promise<Error | null> => null,
  };
  let sessions = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: own.secure || own.key ? [] : ['STARTTLS'],
    onConnect(_session, done) {
      sessions += 1;
      done();
    },
    onRcptTo: ({ address }, _session, done) => done(rules.onRecipient(address)),
    onData(stream, session, done) {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', async () => {
        const raw = Buffer.concat(parts).toString();
        const to = session.envelope.rcptTo[0]?.address ?? '';
        const mail = { to, raw, parsed: await PostalMime.parse(raw) };
        mails.push(mail);
        done(await rules.onMessage(mail));
      });
    },
    ...own,
  });
  server.on('error', () => {}); // clients that close early
  await new Promise<void>((listening) => server.listen(port, host, listening));
  const { port: used } = server.server.address() as AddressInfo;
  allowSockets('mail server', `http://${host}:${used}`);
  let isOpen = true;
  const stop = () =>
    new Promise<void>((closed) => {
      if (!isOpen) return closed();
      isOpen = false;
      server.close(() => closed());
    });
  onTestFinished(stop);
  return { mails, rules, port: used, url: `smtp://${host}:${used}`, countSessions: () => sessions, stop };
}
