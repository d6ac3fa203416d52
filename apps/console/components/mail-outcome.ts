import type { MailOutcome } from '#domain/mail/find-mail.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { time } from './time.ts';

/** Says what became of an email. `what`: which one. */
export function describeMail({ state, reply, at }: MailOutcome, what = 'The email'): Html {
  if (state === 'sent') return html`${what} was sent ${time(at)}.`;
  if (state === 'waiting') return html`${what} waits to be sent.`;
  if (state === 'rejected')
    return html`The mail server rejected ${what.toLowerCase()} ${time(at)} (${reply ?? 'no code'}). Check the address.`;
  return html`${what} was not sent.`;
}
