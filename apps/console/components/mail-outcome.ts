import type { MailOutcome } from '#domain/mail/find-mail.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { notice } from './notice.ts';
import { time } from './time.ts';

/** Says that no email is sent, where none is. */
export const withoutMail = ({ sendsMail }: { sendsMail: boolean }): Html =>
  sendsMail ? nothing : notice('warning', 'This installation sends no email.');

/** Says what became of an email. `what`: which one. */
export function describeMail({ state, reply, at }: MailOutcome, what = 'The email'): Html {
  if (state === 'sent') return html`${what} was sent ${time(at)}.`;
  if (state === 'waiting') return html`${what} waits to be sent.`;
  if (state === 'rejected')
    return html`The mail server rejected ${what.toLowerCase()} ${time(at)} (${reply ?? 'no code'}). Check the address.`;
  return html`${what} was not sent.`;
}
