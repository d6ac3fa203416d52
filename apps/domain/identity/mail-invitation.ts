import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { isMailable, notMailableReason } from '../contract/email.ts';
import type { Transaction } from '../db/database.ts';
import { type SealingKeys, seal } from '../encryption/envelope.ts';
import { mailRow } from '../mail/seal.ts';
import { IdentityError } from './errors.ts';

/** How often an organization may mail invitations in 24 hours, and to one person (`write_invitation`). */
export const invitationsPerDay = 50;
export const invitationsPerPerson = 3;

/**
 * Writes the mail with a person's newest link, in the transaction that creates the link. The token is
 * sealed, and erased when the mail is settled.
 *
 * @throws IdentityError `email_not_mailable`; `too_many_invitations`: otherwise an owner could mail strangers at will.
 */
export async function writeInvitation(
  tx: Transaction,
  link: { organizationId: string; personId: string; email: string; token: string },
  keys: SealingKeys,
): Promise<void> {
  if (!isMailable(link.email))
    throw new IdentityError(
      'email_not_mailable',
      `No invitation can be mailed to this address: it ${notMailableReason}. Enter another address of the person.`,
    );
  const id = randomUUID();
  const [row] = await tx.query(sql<{ isWritten: boolean }>`
    select write_invitation(${id}, ${link.organizationId}, ${link.personId}, ${seal(link.token, mailRow(id), keys)})
      as "isWritten"`);
  if (row?.isWritten !== true)
    throw new IdentityError(
      'too_many_invitations',
      `No more invitations can be mailed now: ${invitationsPerPerson} a day to one person, and ${invitationsPerDay} ` +
        'a day for the organization. Try again tomorrow.',
    );
}
