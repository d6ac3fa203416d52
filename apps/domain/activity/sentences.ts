import type { ActivityEntry } from './search.ts';

/**
 * A sentence in parts: texts of ours, and what somebody called something, which a page sets apart
 * because it may be in any script or direction.
 */
export type Sentence = readonly (string | { name: string })[];

type Detail = Record<string, unknown>;

/** Makes a sentence from a template: what stands in it are names. */
function say(texts: TemplateStringsArray, ...names: string[]): Sentence {
  return texts.flatMap((text, index) => {
    const name = names[index];
    return name === undefined ? [text] : [text, { name }];
  });
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): string => (Array.isArray(value) ? value.map(text).join(', ') : '');
const key = ({ keyLabel, keyHint, keyId }: ActivityEntry) => keyLabel || keyHint || keyId || 'one that is not named';
const member = ({ memberName, detail }: ActivityEntry) => memberName ?? text(detail?.memberId);
const role = (detail: Detail) => text(detail.key);
const factor = (detail: Detail) => (detail.kind === 'passkey' ? 'a passkey' : 'an authenticator app');
const many = (value: unknown, one: string, more: string) => (value === 1 ? `one ${one}` : `${value} ${more}`);

/** What each read gives, by operation id. */
export const reads: Readonly<Record<string, string>> = {
  getOrg: 'the organization',
  getFirmRoster: 'the roster of clients',
  getOrgSeatFamilies: 'the families with seats',
  listMembers: 'the members',
  getFirmOutcomes: 'the outcomes',
  listOrgReferralCodes: 'the referral codes',
  getOrgReferralEarnings: 'the referral earnings',
  listRoles: 'the roles',
  getOrgSeats: 'the seat counts',
};

/** What was tried, when signing in failed. */
const steps: Record<string, string> = {
  password: 'the password was wrong',
  old_password: 'the old password was wrong',
  totp: 'the code was wrong',
  passkey: 'the passkey was not accepted',
  recovery_code: 'the recovery code was wrong',
};

/** How each action is told, after who did it; and what it is called where one is chosen. */
const deeds: Record<string, { title: string; tell: (entry: ActivityEntry, detail: Detail) => Sentence }> = {
  'key.create': { title: 'Made an API key', tell: (e) => say`Made the API key “${key(e)}”` },
  'key.rotate': { title: 'Rotated an API key', tell: (e) => say`Rotated a key; “${key(e)}” is its successor` },
  'key.revoke': { title: 'Revoked an API key', tell: (e) => say`Revoked the API key “${key(e)}”` },
  'key.report': {
    title: 'Reported a compromised key',
    tell: (e) => say`Reported the API key “${key(e)}” as compromised`,
  },
  'webhook.create': { title: 'Made a webhook', tell: (_, d) => say`Made a webhook to ${text(d.host)}` },
  'webhook.change': { title: 'Changed a webhook', tell: (_, d) => say`Changed a webhook: ${list(d.changed)}` },
  'webhook.rotate_secret': { title: 'Rotated a signing secret', tell: () => say`Rotated a webhook’s signing secret` },
  'webhook.test': { title: 'Sent a test event', tell: (_, d) => say`Sent a test event (${text(d.eventType)})` },
  'webhook.tested': {
    title: 'Saw what came of a test event',
    tell: (_, d) =>
      d.delivered === true
        ? [`Had a test event accepted (${text(d.eventType)})`]
        : [`Had a test event that was not accepted (${text(d.eventType)}: ${text(d.cause)})`],
  },
  'webhook.pause': { title: 'Paused a webhook', tell: () => say`Paused a webhook` },
  'webhook.park': {
    title: 'Suspended a webhook',
    tell: () => say`Suspended a webhook that had accepted nothing for days`,
  },
  'webhook.resume': { title: 'Resumed a webhook', tell: () => say`Resumed a webhook` },
  'webhook.delete': { title: 'Deleted a webhook', tell: () => say`Deleted a webhook` },
  'webhook.redeliver': { title: 'Redelivered a range', tell: () => say`Had a webhook’s events of a range sent again` },
  'webhook.redelivered': {
    title: 'Ended a redelivery',
    tell: () => say`A redelivery of a range has come to its end`,
  },
  'webhook.cancel_redelivery': {
    title: 'Cancelled a redelivery',
    tell: () => say`Cancelled the redelivery of a range`,
  },
  'webhook.verify': {
    title: 'Asked whether signatures are checked',
    tell: () => say`Asked a webhook’s receiver to prove that it checks signatures`,
  },
  'webhook.verified': {
    title: 'Judged a check of signatures',
    tell: (_, d) => say`Found whether a webhook’s receiver checks signatures: ${text(d.result) || 'not known'}`,
  },
  'delivery.redeliver': { title: 'Redelivered an event', tell: () => say`Had one event sent again` },
  'delivery.retry': { title: 'Retried a delivery', tell: () => say`Had a delivery’s next attempt made at once` },
  'delivery.cancel': {
    title: 'Cancelled deliveries',
    tell: (_, d) => say`Cancelled ${many(d.deliveries ?? 1, 'open delivery', 'open deliveries')}`,
  },
  'member.invite': { title: 'Invited a member', tell: (e) => say`Invited ${member(e)}` },
  'member.join': { title: 'Joined', tell: () => say`Joined the organization` },
  'member.change': { title: 'Changed a member', tell: (e) => say`Changed what is known of ${member(e)}` },
  'member.suspend': { title: 'Suspended a member', tell: (e) => say`Suspended ${member(e)}` },
  'member.reinstate': { title: 'Reinstated a member', tell: (e) => say`Reinstated ${member(e)}` },
  'member.remove': {
    title: 'Removed a member',
    tell: (e, d) => (e.personId === d.memberId ? say`Left the organization` : say`Removed ${member(e)}`),
  },
  'member.role_assign': {
    title: 'Gave a role',
    tell: (e, d) => say`Gave ${member(e)} the role ${role(d)}`,
  },
  'member.role_unassign': {
    title: 'Took a role',
    tell: (e, d) => say`Took the role ${role(d)} from ${member(e)}`,
  },
  'role.create': { title: 'Made a role', tell: (_, d) => say`Made the role ${role(d)}` },
  'role.change': { title: 'Changed a role', tell: (_, d) => say`Changed the role ${role(d)}` },
  'role.delete': { title: 'Deleted a role', tell: (_, d) => say`Deleted the role ${role(d)}` },
  'seat.give': { title: 'Gave a seat', tell: () => say`Gave a seat` },
  'seat.end': { title: 'Ended a seat', tell: () => say`Ended a seat` },
  'grant.end': { title: 'Ended access', tell: () => say`Ended a professional’s access to a family` },
  'grant.move': { title: 'Moved access', tell: () => say`Moved access to a family to another professional` },
  'sign_in.enrol': { title: 'Enrolled', tell: (_, d) => say`Enrolled with ${factorOf(d)}` },
  'sign_in.recover': {
    title: 'Recovered sign-in',
    tell: (_, d) => say`Set up sign-in anew with a recovery link and ${factorOf(d)}`,
  },
  'sign_in.confirm': {
    title: 'Confirmed a sign-in',
    tell: (e, d) =>
      d.by === 'operator' ? say`Confirmed the sign-in of ${member(e)}` : say`Confirmed their sign-in with a link`,
  },
  'sign_in.password': { title: 'Passed the password', tell: () => say`Gave the right password` },
  'sign_in.complete': { title: 'Signed in', tell: (_, d) => say`Signed in with ${stepOf(d)}` },
  'sign_in.step_up': { title: 'Confirmed identity', tell: (_, d) => say`Confirmed with ${stepOf(d)} that it is them` },
  'sign_in.failure': {
    title: 'Failed to sign in',
    tell: (_, d) => [`Failed to sign in: ${steps[text(d.step)] ?? 'what was given was wrong'}`],
  },
  'sign_in.change_address': {
    title: 'Changed an address to sign in with',
    tell: (e) => say`Changed the address that ${member(e)} signs in with`,
  },
  'sign_in.release': {
    title: 'Released an address',
    tell: (e) => say`Took back the address that ${member(e)} signed in with; they enrol anew`,
  },
  'factor.add': { title: 'Added a second factor', tell: (_, d) => [`Added ${factor(d)} as a second factor`] },
  'factor.remove': { title: 'Removed a second factor', tell: (_, d) => [`Removed ${factor(d)}`] },
  'recovery_codes.renew': { title: 'Renewed recovery codes', tell: () => say`Made new recovery codes` },
  'password.change': { title: 'Changed a password', tell: () => say`Changed their password` },
  'session.sign_out': { title: 'Signed out', tell: () => say`Signed out` },
  'session.end': { title: 'Ended a session', tell: () => say`Ended one of their sessions` },
  'session.end_all': { title: 'Ended all sessions', tell: (e) => say`Ended all sessions of ${member(e)}` },
  'session.end_others': { title: 'Ended other sessions', tell: () => say`Ended their other sessions` },
  'activity.download': { title: 'Downloaded the log', tell: () => say`Downloaded lines of this log as CSV` },
  import: { title: 'Imported data', tell: (_, d) => say`Imported ${text(d.file)}` },
  'import.backfill': { title: 'Imported in silence', tell: (_, d) => say`Imported ${text(d.file)} without events` },
  ...Object.fromEntries(
    Object.entries(reads).map(([operation, what]) => [
      `api.${operation}`,
      {
        title: `Read ${what}`,
        tell: ({ status }: ActivityEntry) => [
          `${status !== null && status >= 400 ? 'Was refused' : 'Read'} ${what} (${operation})`,
        ],
      },
    ]),
  ),
  'api.none': { title: 'Called no known read', tell: () => say`Called something that is no read of the API` },
  'api.console': {
    title: 'Was sent to the console',
    tell: ({ count }) => [
      `Was sent to the console, which accepts no keys: ${many(count, 'request was', 'requests were')} refused within a minute`,
    ],
  },
  'api.rate_limited': {
    title: 'Was over the limit',
    tell: ({ count }) => [
      `Was over the limit: ${many(count, 'call was', 'calls were')} refused within a minute, and read nothing`,
    ],
  },
};

/** Actions that are known, each with what it is called, in the order in which they are offered. */
export const knownActions: readonly { action: string; title: string }[] = Object.entries(deeds).map(
  ([action, { title }]) => ({ action, title }),
);

/** What a line tells, without who did it. An action that has no sentence yet is shown as it is. */
export function tellWhat(entry: ActivityEntry): Sentence {
  return Object.hasOwn(deeds, entry.action)
    ? (deeds[entry.action]?.tell(entry, entry.detail ?? {}) ?? [entry.action])
    : [entry.action];
}

/**
 * Actions that nobody asks for: a line of them without a person is the system's, any other an
 * operator's.
 */
const ofTheSystem: ReadonlySet<string> = new Set([
  'webhook.park',
  'webhook.redelivered',
  'webhook.verified',
  'delivery.cancel',
]);

/** Who did it: for a read the key, for all else a person, an operator, or the system. */
export function tellWho(entry: ActivityEntry): Sentence {
  if (entry.status !== null && entry.keyId !== null) return say`The key “${key(entry)}”`;
  if (entry.personId !== null) return [{ name: entry.personName ?? entry.personId }];
  return [ofTheSystem.has(entry.action) ? 'The system' : 'An operator'];
}

/** A sentence as plain text. */
export const textOf = (sentence: Sentence): string =>
  sentence.map((part) => (typeof part === 'string' ? part : part.name)).join('');

function factorOf({ factor: kind }: Detail): string {
  return kind === 'passkey' ? 'a passkey' : 'an authenticator app';
}

function stepOf({ step }: Detail): string {
  const names: Record<string, string> = { passkey: 'a passkey', recovery_code: 'a recovery code' };
  return names[text(step)] ?? 'an authenticator app';
}
