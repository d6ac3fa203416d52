import { plainText } from '#domain/contract/unseen-characters.ts';
import { timeZoneNames } from '#domain/identity/organization-settings.ts';
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

/** The end of a month of an organization's audit log. `month`: `YYYY-MM`, UTC. `hash`: hexadecimal. */
interface MailAnchor {
  month: string;
  position: number;
  hash: string;
}

/** What `admit_mail` returns of what a mail tells. */
export interface MailFacts {
  /** The name that its owners chose, else the platform's. */
  organization?: string;
  /** The platform's. */
  registeredName?: string;
  /** The zone of its times; null: UTC. */
  timeZone?: string | null;
  items: { id: string; number: number | null; host?: string; at?: string }[];
  expiresAt?: string | null;
  anchor?: MailAnchor | null;
}

export interface MailContent {
  kind: MailKind;
  organizationId: string | null;
  /** Null: the organization's security contact. */
  personId: string | null;
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

/** Returns a time as `November 29, 2026 at 3:31 PM (America/New York)`; without a known zone `… at 8:31 PM UTC`. */
export function formatTime(at: Date | string, zone: string | null = null): string {
  const timeZone = zone !== null && timeZoneNames.includes(zone) ? zone : 'UTC';
  const written = new Date(at).toLocaleString('en-US', { dateStyle: 'long', timeStyle: 'short', timeZone });
  const text = written.replace(/\s(?=[AP]M$)/, '\u00a0'); // no line breaks there
  return timeZone === 'UTC' ? `${text} UTC` : `${text} (${timeZone.replaceAll('_', ' ')})`;
}

/** Returns `2026-11` as `November 2026`. */
export const formatMonth = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** What a mail's text is built of: its names and times as its reader knows them, and a form for each audience. */
export function createForms(mail: MailContent, origin: string) {
  const { kind, organizationId, personId, facts, createdAt } = mail;
  // Who is no member may not know the name that owners chose, and owners may not choose what strangers read.
  const isOutsider = personId === null || kind === 'invitation';
  const organization = formatName((isOutsider ? facts.registeredName : facts.organization) ?? '');
  const { items, timeZone } = facts;
  const format = (at: Date | string) => formatTime(at, timeZone);
  const when: [string, string] = ['Time', format(createdAt)];
  const [first] = items;
  const isOne = items.length === 1;
  /** Chooses by the number of keys or webhooks. */
  const choose = (one: string, several: string) => (isOne ? one : several);
  const within = (path: string) => `${origin}/o/${organizationId}${path}`;
  const open = (path: string, label: string) => ({ label, url: within(isOne ? `${path}/${first?.id}` : path) });
  const ofContact = `this address is the security contact of ${organization}`;
  const because = (reason: string) => `You get this email because ${personId === null ? ofContact : reason}.`;

  const ofPerson = (subject: string, ...sentences: string[]): MailText => ({
    subject,
    sentences,
    facts: [when],
    action: { label: 'Open your account', url: `${origin}/account` },
    advice:
      'If this was you, there is nothing to do. If not, change your password and end your other sessions now. ' +
      'Contact support if you can’t sign in.',
    reason: 'You get this email because it concerns the security of your sign-in.',
  });
  const ofKey = (subject: string, sentences: string[], advice: string): MailText => ({
    subject,
    sentences,
    facts: [['Organization', organization], ['API key', nameKey(first)], when],
    action: open('/keys', 'View API key'),
    advice,
    reason: because(`you can manage the API keys of ${organization}`),
  });
  const ofWebhooks = (subject: string, sentences: string[], advice: string): MailText => ({
    subject,
    sentences,
    facts: [
      ['Organization', organization],
      ...items.map((webhook) => factOfWebhook(webhook, format)),
      ...(items.some(({ at }) => at !== undefined) ? [] : [when]),
    ],
    action: open('/webhooks', isOne ? 'View webhook' : 'View webhooks'),
    advice,
    reason: because(`you can manage the webhooks of ${organization}`),
  });
  const ofOwner = (subject: string, sentences: string[], path: string, label: string): MailText => ({
    subject,
    sentences,
    facts: [['Organization', organization], when],
    action: { label, url: within(path) },
    advice: 'If no owner meant this, check the audit log, and remove members who must not have access.',
    reason: because(`you are an owner of ${organization}`),
  });

  return { organization, choose, format, within, open, because, ofPerson, ofKey, ofWebhooks, ofOwner };
}

/** An ended key has no number any more. */
export const nameKey = (key: MailFacts['items'][number] | undefined): string =>
  key?.number == null ? 'Ended key' : `Key ${key.number}`;

const factOfWebhook = (
  { number, host, at }: MailFacts['items'][number],
  format: (at: string) => string,
): [string, string] => [
  number == null ? 'Deleted webhook' : `Webhook ${number}`,
  [plainText(host ?? '').slice(0, 253), ...(at === undefined ? [] : [`failing since ${format(at)}`])].join(', '),
];
