import type { SendMailOptions } from 'nodemailer';
import { type SealingKeys, unseal } from '#domain/encryption/envelope.ts';
import { findOptional } from '#domain/mail/kinds.ts';
import { mailRow } from '#domain/mail/seal.ts';
import { createStopLink } from '#domain/mail/stop-link.ts';
import type { MailSender } from '#runtime/settings/mail.ts';
import { renderHtml, renderText } from './render.ts';
import type { MailContent } from './text-forms.ts';
import { composeText } from './texts.ts';

/** A mail that may be tried now, as `admit_mail` returns it. */
export interface AdmittedMail extends Omit<MailContent, 'token'> {
  id: string;
  address: string;
  sealed: Buffer | null;
  attempts: number;
}

/**
 * Returns the message of a mail. A repeat has the same bytes: its id, time and boundary come from the
 * row, so that receivers which know a Message-ID can drop it.
 *
 * @throws UnsealError when the token's key is missing.
 */
export function composeMessage(
  mail: AdmittedMail,
  { sender, origin, keys }: { sender: MailSender; origin: string; keys: SealingKeys },
): SendMailOptions {
  const token = mail.sealed === null ? null : unseal(mail.sealed, mailRow(mail.id), keys);
  const text = composeText({ ...mail, token }, origin);
  const { organizationId, personId } = mail;
  const kind = findOptional(mail.kind);
  const stop =
    kind && organizationId && personId ? createStopLink(origin, { organizationId, personId, kind }, keys) : null;
  return {
    from: sender,
    to: { name: '', address: mail.address },
    envelope: { from: sender.address, to: [mail.address] },
    subject: text.subject,
    text: renderText(text, stop),
    html: renderHtml(text, stop),
    messageId: `<${mail.id}@${sender.address.split('@')[1]}>`,
    date: mail.createdAt,
    baseBoundary: mail.id,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      ...(stop === null
        ? {}
        : { 'List-Unsubscribe': `<${stop}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
