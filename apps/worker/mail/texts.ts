import { plainText } from '#domain/contract/unseen-characters.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import type { MailKind } from '#domain/mail/kinds.ts';

/** A mail before it is rendered: no markup. */
export interface MailText {
  subject: string;
  /** What happened, a sentence each. */
  sentences: string[];
  facts: [name: string, value: string][];
  action: { label: string; url: string };
  /** What to do if it is not as expected. */
  advice: string;
  /** Why this person gets it. */
  reason: string;
}

/** What `admit_mail` returns of what a mail tells. */
export interface MailFacts {
  organization?: string;
  items: { id: string; number: number | null; host?: string; at?: string }[];
  expiresAt?: string | null;
}

export interface MailContent {
  kind: MailKind;
  organizationId: string | null;
  facts: MailFacts;
  /** The token of an invitation's link. */
  token: string | null;
  createdAt: Date;
}

const shownLength = 100;

/** Returns a name of other people as one line that cannot affect the text around it. */
function formatName(name: string): string {
  const characters = [...plainText(name.replaceAll(/\s+/g, ' ').trim())];
  return characters.length > shownLength ? `${characters.slice(0, shownLength - 1).join('')}…` : characters.join('');
}

const dateTime = new Intl.DateTimeFormat('en-US', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

/** Returns a time as `November 29, 2026 at 8:31 PM UTC`. */
export const formatTime = (at: Date | string): string => `${dateTime.format(new Date(at))} UTC`;

/** Returns the text of a mail. The same mail has the same text each time. */
export function composeText(mail: MailContent, origin: string): MailText {
  const { kind, organizationId, facts, token, createdAt } = mail;
  const organization = formatName(facts.organization ?? '');
  const at = formatTime(createdAt);
  const when: [string, string] = ['Time', at];
  const { items } = facts;
  const [first] = items;
  const isOne = items.length === 1;
  const within = (path: string) => `${origin}/o/${organizationId}${path}`;
  const open = (path: string, label: string) => ({ label, url: within(isOne ? `${path}/${first?.id}` : path) });

  const ofPerson = (subject: string, sentence: string): MailText => ({
    subject,
    sentences: [sentence],
    facts: [when],
    action: { label: 'Open your account', url: `${origin}/account` },
    advice:
      'If this was you, there is nothing to do. If not, change your password and end your other sessions now. ' +
      'Contact support if you can’t sign in.',
    reason: 'You get this email because it concerns the security of your sign-in.',
  });
  const ofKey = (subject: string, sentence: string): MailText => ({
    subject,
    sentences: [sentence],
    facts: [['Organization', organization], ['API key', nameKey(first)], when],
    action: open('/keys', 'View API key'),
    advice: 'If no member of your organization meant this, revoke the key and check the audit log.',
    reason: `You get this email because you can manage the API keys of ${organization}.`,
  });
  const ofWebhooks = (subject: string, sentences: string[], advice: string): MailText => ({
    subject,
    sentences,
    facts: [['Organization', organization], ...items.map(factOfWebhook)],
    action: open('/webhooks', isOne ? 'View webhook' : 'View webhooks'),
    advice,
    reason: `You get this email because you can manage the webhooks of ${organization}.`,
  });
  const ofOwner = (subject: string, sentence: string, path: string, label: string): MailText => ({
    subject,
    sentences: [sentence],
    facts: [['Organization', organization], when],
    action: { label, url: within(path) },
    advice: 'If no owner meant this, check the audit log, and remove members who must not have access.',
    reason: `You get this email because you are an owner of ${organization}.`,
  });

  switch (kind) {
    case 'invitation':
      return {
        subject: `Invitation to join ${organization}`,
        sentences: [
          `A member of ${organization} invited you to its organization console.`,
          'The link works once. It asks you to sign in, or to set up sign-in.',
        ],
        facts: [
          ['Organization', organization],
          ['Link expires', formatTime(facts.expiresAt ?? createdAt)],
        ],
        action: { label: 'Accept invitation', url: enrolmentLink(origin, token ?? '') },
        advice: 'If you did not expect this, ignore it. Do not forward it: anyone with the link can join as you.',
        reason: `You get this email because a member of ${organization} entered your address.`,
      };
    case 'password.change':
      return ofPerson('Your password was changed', 'The password of your sign-in was changed. Other sessions ended.');
    case 'factor.add':
      return ofPerson('A second factor was added', 'A second factor was added to your sign-in.');
    case 'factor.remove':
      return ofPerson('A second factor was removed', 'A second factor was removed from your sign-in.');
    case 'recovery_codes.renew':
      return ofPerson('New recovery codes were created', 'New recovery codes replaced your earlier ones.');
    case 'sign_in.recover':
      return ofPerson(
        'Your sign-in was recovered',
        'A recovery link of an operator was used. It replaced your password and second factors.',
      );
    case 'sign_in.complete':
      return ofPerson('Sign-in from a new browser', 'You signed in from a browser that you had not used before.');
    case 'sign_in.change_address':
      return {
        ...ofPerson('Your sign-in address was changed', 'An operator changed the email address of your sign-in.'),
        advice: 'If you asked for this, there is nothing to do. If not, contact support now.',
        reason: 'You get this email because this is the old or the new address of your sign-in.',
      };
    case 'key.create':
      return ofKey(`An API key of ${organization} was created`, 'A new API key can read your organization’s data.');
    case 'key.rotate':
      return ofKey(`An API key of ${organization} was rotated`, 'A new API key replaces an earlier one.');
    case 'key.revoke':
      return ofKey(`An API key of ${organization} was revoked`, 'Requests with this key are rejected from now on.');
    case 'key.report':
      return ofKey(
        `An API key of ${organization} was reported as leaked`,
        'The key was reported as leaked. Check what it read, and replace it.',
      );
    case 'key.expiring':
      return {
        subject: isOne
          ? `An API key of ${organization} expires soon`
          : `${items.length} API keys of ${organization} expire soon`,
        sentences: ['Requests with an expired key are rejected. Rotate the key now, and put the new one into use.'],
        facts: [
          ['Organization', organization],
          ...items.map((key): [string, string] => [nameKey(key), `Expires ${formatTime(key.at ?? createdAt)}`]),
        ],
        action: open('/keys', isOne ? 'View API key' : 'View API keys'),
        advice: 'If the key is no longer needed, there is nothing to do.',
        reason: `You get this email because you can manage the API keys of ${organization}.`,
      };
    case 'webhook.failing':
      return ofWebhooks(
        isOne ? `A webhook of ${organization} is failing` : `${items.length} webhooks of ${organization} are failing`,
        [
          isOne
            ? 'The receiver has accepted no event for more than an hour.'
            : 'Their receivers have accepted no event for more than an hour.',
          'No event is lost yet: each is sent again for three days. Repair what fails before then.',
        ],
        'You get one email a day while this continues.',
      );
    case 'webhook.suspend':
      return ofWebhooks(
        `A webhook of ${organization} was suspended`,
        [
          'The receiver accepted no event for days, or answered 410 Gone, so nothing more is sent to it.',
          'New events are held. Repair the receiver, then resume the webhook.',
        ],
        'If the webhook is no longer needed, delete it.',
      );
    case 'webhook.resume':
      return ofWebhooks(
        `A webhook of ${organization} was resumed`,
        ['The suspended webhook was resumed. Events that were held are being sent.'],
        'There is nothing to do.',
      );
    case 'audit_log.download':
      return ofOwner(
        `The audit log of ${organization} was downloaded`,
        'Entries of the audit log were downloaded as a file.',
        '/audit-log',
        'View audit log',
      );
    case 'audit_log.evidence':
      return ofOwner(
        `Evidence of ${organization} was exported`,
        'A part of the audit log was exported as an evidence package.',
        '/audit-log',
        'View audit log',
      );
    case 'owner.add':
      return ofOwner(
        `An owner was added to ${organization}`,
        'A member was given the role Owner, with every permission.',
        '/members',
        'View members',
      );
    case 'owner.remove':
      return ofOwner(
        `An owner of ${organization} was removed`,
        'A member no longer has the role Owner.',
        '/members',
        'View members',
      );
  }
}

/** An ended key has no number any more. */
const nameKey = (key: MailFacts['items'][number] | undefined): string =>
  key?.number == null ? 'Ended key' : `Key ${key.number}`;

const factOfWebhook = ({ number, host, at }: MailFacts['items'][number]): [string, string] => [
  number == null ? 'Deleted webhook' : `Webhook ${number}`,
  [plainText(host ?? '').slice(0, 253), ...(at === undefined ? [] : [`failing since ${formatTime(at)}`])].join(', '),
];
