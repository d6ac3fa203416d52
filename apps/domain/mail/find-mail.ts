import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import type { MailKind } from './kinds.ts';

/** A mail as operators see it: no address, no token and no text. Times are UTC. */
export interface MailDetails {
  id: string;
  kind: MailKind;
  /** Null: about a person's sign-in. */
  organizationId: string | null;
  /** Null: to the organization's security contact. */
  personId: string | null;
  /** The key or webhook that it is about; null for another kind. */
  about: string | null;
  state: 'waiting' | 'sent' | 'rejected' | 'expired' | 'dropped';
  attempts: number;
  /** The codes of the server's last reply, or of the last error. */
  reply: string | null;
  /** When it happened that the mail tells. */
  createdAt: string;
  attemptedAt: string | null;
  /** Null once it is settled. */
  nextAttemptAt: string | null;
  settledAt: string | null;
}

/** What became of a mail, as members see it. */
export interface MailOutcome {
  state: MailDetails['state'];
  /** The codes of the server's last reply. */
  reply: string | null;
  /** When it was settled; of one that waits, when it was written. */
  at: Date;
}

/**
 * Returns what became of the last mail to an organization's security contact; null when this one has got none within
 * 30 days, or gets its mails as a member.
 */
export async function findContactMail(db: Queryable, organizationId: string): Promise<MailOutcome | null> {
  const [row] = await db.query(sql<Omit<MailOutcome, 'at'> & { at: string }>`
    select m.state, m.reply, coalesce(m.settled_at, m.created_at) as at from mail m
    where m.organization_id = ${organizationId}::uuid and m.person_id is null and not exists (
      select from mail c where c.organization_id = m.organization_id and c.kind = 'security_contact.change'
        and c.created_at > m.created_at)
    order by m.created_at desc, m.id desc limit 1`);
  return row === undefined ? null : { ...row, at: new Date(row.at) };
}

/** Returns the mail with an id; null when there is none, or none any more. */
export async function findMail(db: Queryable, mailId: string): Promise<MailDetails | null> {
  // The hash of a link's token is longer than an id.
  const [row] = await db.query(sql<MailDetails>`
    select m.id, m.kind, m.organization_id as "organizationId", m.person_id as "personId",
      case when length(m.about) = 36 then m.about end as about, m.state, m.attempts, m.reply,
      api.utc(m.created_at) as "createdAt", api.utc(m.attempted_at) as "attemptedAt",
      api.utc(m.due_at) as "nextAttemptAt", api.utc(m.settled_at) as "settledAt"
    from mail m where m.id = ${mailId}::uuid`);
  return row ?? null;
}
