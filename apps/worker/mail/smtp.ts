import { createTransport, type SendMailOptions } from 'nodemailer';

/** The mail server. */
export interface MailServer {
  url: URL;
  /** PEM of the authorities that may issue the server's certificate; null: the public ones. */
  authorities: string | null;
}

/**
 * How a try ended. `rejected`: the server will never take this mail. `later`: not this mail now.
 * `unavailable`: no mail now. `misconfigured`: no mail until an operator changes something.
 */
export const tryOutcomes = ['sent', 'rejected', 'later', 'unavailable', 'misconfigured'] as const;
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
const tryMs = 120_000;

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
  message: string;
  code?: string | undefined;
  responseCode?: number | undefined;
  response?: string | undefined;
  command?: string | undefined;
}

const settingsFailures = new Set(['EAUTH', 'ETLS', 'ENOAUTH']);

/**
 * Says whose fault a failure is. A 5xx about the recipient or the content is of this mail. Before that
 * (TLS, sign-in, sender) it is of the settings, and so is 5.7 about a recipient: the server does not
 * relay for this sender, or blocks it, and says nothing of the address.
 */
export function classifyFailure(failure: SmtpFailure): TryResult {
  // A wrong certificate has no code of its own.
  if (/certificate|self.signed|altnames|alert|SSL routines|wrong version/i.test(failure.message))
    return { outcome: 'misconfigured', reply: 'TLS' };
  const { code = '', responseCode = 0, response = '' } = failure;
  const reply = findCodes(response) ?? (responseCode > 0 ? String(responseCode) : nameError(code));
  return { outcome: findOutcome(failure, reply), reply };
}

function findOutcome({ code = '', responseCode = 0, command = '' }: SmtpFailure, reply: string): TryOutcome {
  const isTemporary = responseCode >= 400 && responseCode < 500;
  const isOfMail = responseCode > 0 && /^(RCPT TO|DATA)/.test(command);
  if (settingsFailures.has(code)) return isTemporary ? 'unavailable' : 'misconfigured';
  if (responseCode < 500) return isOfMail ? 'later' : 'unavailable';
  return isOfMail && !/^5\d\d 5\.7\./.test(reply) ? 'rejected' : 'misconfigured';
}

const nameError = (code: string): string => code.replaceAll(/[^A-Z0-9_]/g, '').slice(0, 30) || 'ERROR';

/** Returns the basic and the enhanced code of a reply; null for another text. */
function findCodes(response: string): string | null {
  const [, basic, enhanced] = /^(\d{3})(?:[ -]([245]\.\d{1,3}\.\d{1,3})\b)?/.exec(response) ?? [];
  return basic === undefined ? null : [basic, enhanced].filter(Boolean).join(' ');
}
