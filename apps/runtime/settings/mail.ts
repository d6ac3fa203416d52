import { z } from 'zod';
import { findEmailProblem } from '#domain/contract/email.ts';
import { InvalidSettingsError } from '../errors.ts';
import { pemCertificate } from './pem.ts';
import { consoleUrl, reject } from './types.ts';

/** The sender of every mail. */
export interface MailSender {
  name: string;
  address: string;
}

/** `Name <address>`, or an address alone. */
export const mailFrom = z.string().transform((text, context): MailSender => {
  const [, name = '', inBrackets] = /^([^<>]*?)\s*<([^<>]+)>$/.exec(text.trim()) ?? [];
  const address = inBrackets ?? text.trim();
  if (findEmailProblem(address) !== null || /[\p{Cc}"]/u.test(name))
    return reject(context, 'must be an email address, or a name and an address: Name <mail@example.org>');
  return { name, address };
});

const mailUrl = z.string().transform((text, context): URL => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isServer = url !== null && ['smtp:', 'smtps:'].includes(url.protocol) && url.hostname !== '';
  if (isServer && ['', '/'].includes(url.pathname) && url.search === '' && url.hash === '') return url;
  return reject(context, 'must be smtps://user:password@host:465, or smtp://user:password@host:587');
});

/** The settings of the process that sends mail. */
export const mailSettings = {
  MAIL_URL: mailUrl
    .optional()
    .describe(
      'Mail server: `smtps://user:password@host:465`, or `smtp://…:587`, which must offer STARTTLS. Only a server on ' +
        'this host may go without TLS. Without it, no mail is sent.',
    ),
  MAIL_FROM: mailFrom.optional().describe('Sender of mails: `Name <address>`. Replies and bounces go there.'),
  MAIL_CA: pemCertificate.optional().meta({
    description: 'PEM of the only authorities that the mail server’s certificate may be of.',
    shown: 'the system’s',
  }),
  CONSOLE_URL: consoleUrl.optional().describe('Address of the console, to which links in mails lead.'),
};

const Mail = z.object(mailSettings);
type Parsed = z.output<typeof Mail>;

/**
 * Returns what mails need, or null without `MAIL_URL`. `urlNow` looks it up when its file may change
 * while the app runs.
 *
 * @throws InvalidSettingsError when a part is missing.
 */
export function findMailSettings({ MAIL_URL, MAIL_FROM, MAIL_CA, CONSOLE_URL }: Parsed, urlNow: () => URL | undefined) {
  if (MAIL_URL === undefined) return null;
  if (MAIL_FROM === undefined || CONSOLE_URL === undefined)
    throw new InvalidSettingsError(['MAIL_URL needs MAIL_FROM and CONSOLE_URL: the sender, and where links lead']);
  return {
    get url() {
      return urlNow() ?? MAIL_URL;
    },
    authorities: MAIL_CA ?? null,
    sender: MAIL_FROM,
    origin: CONSOLE_URL.origin,
  };
}
