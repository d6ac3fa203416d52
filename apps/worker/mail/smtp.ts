import { createTransport, type SendMailOptions } from 'nodemailer';
import { isTlsCode } from '#runtime/egress/fault.ts';

/** The mail server. */
export interface MailServer {
  url: URL;
  /** PEM of the authorities that may issue the server's certificate; null: the public ones. */
  authorities: string | null;
}

/**
 * How a try ended. `rejected`: the server will never take this mail. `later`: not this mail now. `blocked`: not
 * this mail, by a policy of the server, which may be about the recipient or about the sender. `unavailable`: no mail
 * now. `misconfigured`: no mail until an operator changes something.
 */
export const tryOutcomes = ['sent', 'rejected', 'later', 'blocked', 'unavailable', 'misconfigured'] as const;
export type TryOutcome = (typeof tryOutcomes)[number];

export interface TryResult {
  outcome: TryOutcome;
  /** The codes of the server's reply (`550 5.1.1`), or of the error. Never its text, which repeats addresses. */
  reply: string;
}

const answerMs = 10_000;
/** A server may check a message for longer before it takes it. */
const idleMs = 30_000;
/** All of one try; its admission lasts five minutes. */
export const tryMs = 120_000;

const loopback = new Set(['127.0.0.1', '[::1]', 'localhost']);

/**
 * Tries to send one mail, by a connection of its own. TLS 1.2 or newer, with a valid certificate, is
 * required, from the start (`smtps:`) or by STARTTLS; only a server on this host may go without.
 */
export async function trySend(
  { url, authorities }: MailServer,
  message: SendMailOptions,
  signal: AbortSignal,
): Promise<TryResult> {
  const isLocal = loopback.has(url.hostname);
  const transport = createTransport({
    url: url.href,
    requireTLS: url.protocol === 'smtp:' && !isLocal,
    ignoreTLS: isLocal,
    tls: { minVersion: 'TLSv1.2', ...(authorities === null ? {} : { ca: authorities }) },
    connectionTimeout: answerMs,
    greetingTimeout: answerMs,
    socketTimeout: idleMs,
  });
  try {
    const options = { ...message, signal: AbortSignal.any([signal, AbortSignal.timeout(tryMs)]) };
    const { response } = await transport.sendMail(options);
    return { outcome: 'sent', reply: findCodes(response) ?? '250' };
  } catch (error) {
    return classifyFailure(error as SmtpFailure);
  }
}

/** What nodemailer adds to an error: the reply, and the command that it answers. */
export interface SmtpFailure {
  /** Nodemailer's code of the step that failed. */
  code?: string | undefined;
  /** The code of Node or OpenSSL below it. */
  originalCode?: string | undefined;
  responseCode?: number | undefined;
  response?: string | undefined;
  command?: string | undefined;
}

/** Steps before a mail: a sign-in without a password, and TLS that was closed, or that no option could begin. */
const settingsFailures = new Set(['EAUTH', 'ENOAUTH', 'ETLS', 'ECONFIG']);
/** Nodemailer's own checks of a mail. */
const mailFailures = new Set(['EENVELOPE', 'EMESSAGE', 'ESTREAM']);

/** Says whose fault a failure is, by its codes: a text repeats what anyone chose, such as an address. */
export function classifyFailure(failure: SmtpFailure): TryResult {
  const { code = '', originalCode = code, responseCode = 0, response = '' } = failure;
  if (responseCode > 0) {
    const reply = findCodes(response) ?? String(responseCode);
    return { outcome: judgeReply(failure, reply), reply };
  }
  if (isTlsCode(originalCode)) return { outcome: 'misconfigured', reply: 'TLS' };
  if (settingsFailures.has(code)) return { outcome: 'misconfigured', reply: nameError(code) };
  return { outcome: mailFailures.has(code) ? 'later' : 'unavailable', reply: nameError(code) };
}

/**
 * Judges a reply of the server. One to a recipient or to the content is of this mail; before that it is of the
 * settings (TLS, sign-in, sender) or the server. 5.7 to a recipient says nothing of the address: the server
 * does not relay for this sender, or blocks it, or blocks only this recipient.
 */
function judgeReply({ responseCode = 0, command = '' }: SmtpFailure, reply: string): TryOutcome {
  const isOfMail = command === 'RCPT TO' || command === 'DATA';
  if (responseCode < 500) return isOfMail ? 'later' : 'unavailable';
  if (!isOfMail) return 'misconfigured';
  return / 5\.7\./.test(reply) ? 'blocked' : 'rejected';
}

const nameError = (code: string): string => code.replaceAll(/[^A-Z0-9_]/g, '').slice(0, 30) || 'ERROR';

/** Returns the basic and the enhanced code of a reply; null for another text. */
function findCodes(response: string): string | null {
  const [, basic, enhanced] = /^(\d{3})(?:[ -]([245]\.\d{1,3}\.\d{1,3})\b)?/.exec(response) ?? [];
  return basic === undefined ? null : [basic, enhanced].filter(Boolean).join(' ');
}
