import type { ActivityEntry } from './search.ts';

/**
 * A sentence in parts. A page isolates the names that people typed, which may be in any script or
 * direction.
 */
export type Sentence = readonly (string | { name: string })[];

type Detail = Record<string, unknown>;

/** Builds a sentence from a template whose values are names. */
function sentence(texts: TemplateStringsArray, ...names: string[]): Sentence {
  return texts.flatMap((text, index) => {
    const name = names[index];
    return name === undefined ? [text] : [text, { name }];
  });
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): string => (Array.isArray(value) ? value.map(text).join(', ') : '');
const key = ({ keyLabel, keyHint, keyId }: ActivityEntry) => keyLabel || keyHint || keyId || 'unknown key';
const member = ({ memberName, detail }: ActivityEntry) => memberName ?? text(detail?.memberId);
const role = (detail: Detail) => text(detail.key);
const factor = (detail: Detail) => (detail.kind === 'passkey' ? 'a passkey' : 'an authenticator app');
const many = (value: unknown, one: string, more: string) => `${value} ${value === 1 ? one : more}`;

/** The data that each read returns, by operation id. */
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

/** Why signing in failed, by the step that failed. */
const steps: Record<string, string> = {
  password: 'wrong password',
  old_password: 'wrong current password',
  totp: 'wrong authenticator code',
  passkey: 'passkey not accepted',
  recovery_code: 'wrong recovery code',
};

const signatureResults: Record<string, string> = {
  verified: 'signatures verified',
  accepts_bad_signatures: 'the receiver accepts wrong signatures',
  refuses_good_signatures: 'the receiver rejects correct signatures',
  no_answer: 'no conclusive response',
};

/** Each action's title in the filter, and its description, which follows the actor's name. */
const actions: Record<string, { title: string; describe: (entry: ActivityEntry, detail: Detail) => Sentence }> = {
  'key.create': { title: 'Created an API key', describe: (e) => sentence`Created API key “${key(e)}”` },
  'key.rotate': { title: 'Rotated an API key', describe: (e) => sentence`Rotated an API key. New key: “${key(e)}”` },
  'key.revoke': { title: 'Revoked an API key', describe: (e) => sentence`Revoked API key “${key(e)}”` },
  'key.report': {
    title: 'Reported a leaked key',
    describe: (e) => sentence`Reported API key “${key(e)}” as leaked`,
  },
  'webhook.create': { title: 'Added a webhook', describe: (_, d) => sentence`Added a webhook for ${text(d.host)}` },
  'webhook.change': { title: 'Edited a webhook', describe: (_, d) => sentence`Edited a webhook: ${list(d.changed)}` },
  'webhook.rotate_secret': {
    title: 'Rotated a signing secret',
    describe: () => sentence`Rotated a webhook’s signing secret`,
  },
  'webhook.test': {
    title: 'Sent a test event',
    describe: (_, d) => sentence`Sent a test event (${text(d.eventType)})`,
  },
  'webhook.tested': {
    title: 'Received a test result',
    describe: (_, d) =>
      d.delivered === true
        ? [`Test event delivered (${text(d.eventType)})`]
        : [`Test event failed (${text(d.eventType)}: ${text(d.cause)})`],
  },
  'webhook.pause': { title: 'Paused a webhook', describe: () => sentence`Paused a webhook` },
  'webhook.park': {
    title: 'Suspended a webhook',
    describe: () => sentence`Suspended a webhook, because its receiver accepted no events for days`,
  },
  'webhook.resume': { title: 'Resumed a webhook', describe: () => sentence`Resumed a webhook` },
  'webhook.release': {
    title: 'Released a managed webhook',
    describe: () => sentence`Released a webhook, which members can change from now on`,
  },
  'webhook.delete': { title: 'Deleted a webhook', describe: () => sentence`Deleted a webhook` },
  'webhook.redeliver': { title: 'Started a redelivery', describe: () => sentence`Started a redelivery of events` },
  'webhook.redelivered': {
    title: 'Finished a redelivery',
    describe: () => sentence`Finished a redelivery of events`,
  },
  'webhook.cancel_redelivery': {
    title: 'Cancelled a redelivery',
    describe: () => sentence`Cancelled a redelivery of events`,
  },
  'webhook.verify': {
    title: 'Started a signature check',
    describe: () => sentence`Started a signature check of a webhook`,
  },
  'webhook.verified': {
    title: 'Finished a signature check',
    describe: (_, d) => [`Finished a signature check: ${signatureResults[text(d.result)] ?? 'unknown result'}`],
  },
  'delivery.redeliver': { title: 'Redelivered an event', describe: () => sentence`Redelivered an event` },
  'delivery.retry': { title: 'Retried a delivery', describe: () => sentence`Retried a delivery` },
  'delivery.cancel': {
    title: 'Cancelled deliveries',
    describe: (_, d) => sentence`Cancelled ${many(d.deliveries ?? 1, 'delivery', 'deliveries')}`,
  },
  'member.invite': { title: 'Invited a member', describe: (e) => sentence`Invited ${member(e)}` },
  'member.join': { title: 'Joined the organization', describe: () => sentence`Joined the organization` },
  'member.change': { title: 'Edited a member', describe: (e) => sentence`Edited the details of ${member(e)}` },
  'member.suspend': { title: 'Suspended a member', describe: (e) => sentence`Suspended ${member(e)}` },
  'member.reinstate': { title: 'Reinstated a member', describe: (e) => sentence`Reinstated ${member(e)}` },
  'member.remove': {
    title: 'Removed a member',
    describe: (e, d) => (e.personId === d.memberId ? sentence`Left the organization` : sentence`Removed ${member(e)}`),
  },
  'member.role_assign': {
    title: 'Assigned a role',
    describe: (e, d) => sentence`Assigned role ${role(d)} to ${member(e)}`,
  },
  'member.role_unassign': {
    title: 'Removed a role',
    describe: (e, d) => sentence`Removed role ${role(d)} from ${member(e)}`,
  },
  'role.create': { title: 'Created a role', describe: (_, d) => sentence`Created role ${role(d)}` },
  'role.change': { title: 'Edited a role', describe: (_, d) => sentence`Edited role ${role(d)}` },
  'role.delete': { title: 'Deleted a role', describe: (_, d) => sentence`Deleted role ${role(d)}` },
  'seat.give': { title: 'Assigned a seat', describe: () => sentence`Assigned a seat` },
  'seat.end': { title: 'Ended a seat', describe: () => sentence`Ended a seat` },
  'grant.end': { title: 'Ended client access', describe: () => sentence`Ended a professional’s access to a client` },
  'grant.move': {
    title: 'Moved client access',
    describe: () => sentence`Moved access to a client to another professional`,
  },
  'sign_in.enrol': { title: 'Set up sign-in', describe: (_, d) => sentence`Set up sign-in with ${factorOf(d)}` },
  'sign_in.recover': {
    title: 'Recovered sign-in',
    describe: (_, d) => sentence`Recovered sign-in with a recovery link and ${factorOf(d)}`,
  },
  'sign_in.confirm': {
    title: 'Confirmed a sign-in',
    describe: (e, d) =>
      d.by === 'operator'
        ? sentence`Confirmed the sign-in of ${member(e)}`
        : sentence`Confirmed their sign-in with a link`,
  },
  'sign_in.password': { title: 'Entered a correct password', describe: () => sentence`Entered a correct password` },
  'sign_in.complete': { title: 'Signed in', describe: (_, d) => sentence`Signed in with ${stepOf(d)}` },
  'sign_in.step_up': {
    title: 'Confirmed identity',
    describe: (_, d) => sentence`Confirmed their identity with ${stepOf(d)}`,
  },
  'sign_in.failure': {
    title: 'Failed to sign in',
    describe: (_, d) => [`Failed to sign in: ${steps[text(d.step)] ?? 'wrong credentials'}`],
  },
  'sign_in.change_address': {
    title: 'Changed a sign-in address',
    describe: (e) => sentence`Changed the sign-in address of ${member(e)}`,
  },
  'sign_in.release': {
    title: 'Released a sign-in address',
    describe: (e) => sentence`Released the sign-in address of ${member(e)}, who must set up sign-in again`,
  },
  'factor.add': { title: 'Added a second factor', describe: (_, d) => [`Added ${factor(d)} as a second factor`] },
  'factor.remove': { title: 'Removed a second factor', describe: (_, d) => [`Removed ${factor(d)}`] },
  'recovery_codes.renew': { title: 'Renewed recovery codes', describe: () => sentence`Renewed their recovery codes` },
  'password.change': { title: 'Changed a password', describe: () => sentence`Changed their password` },
  'session.sign_out': { title: 'Signed out', describe: () => sentence`Signed out` },
  'session.end': { title: 'Ended a session', describe: () => sentence`Ended one of their sessions` },
  'session.end_all': { title: 'Ended all sessions', describe: (e) => sentence`Ended all sessions of ${member(e)}` },
  'session.end_others': { title: 'Ended other sessions', describe: () => sentence`Ended their other sessions` },
  'activity.download': {
    title: 'Downloaded the activity log',
    describe: () => sentence`Downloaded the activity log as CSV`,
  },
  import: { title: 'Imported data', describe: (_, d) => sentence`Imported ${text(d.file)}` },
  'import.backfill': {
    title: 'Imported data without events',
    describe: (_, d) => sentence`Imported ${text(d.file)} without events`,
  },
  ...Object.fromEntries(
    Object.entries(reads).map(([operation, what]) => [
      `api.${operation}`,
      {
        title: `Read ${what}`,
        describe: ({ status }: ActivityEntry) => [
          `${status !== null && status >= 400 ? 'Was denied' : 'Read'} ${what} (${operation})`,
        ],
      },
    ]),
  ),
  'api.none': { title: 'Called an unknown endpoint', describe: () => sentence`Called an unknown endpoint` },
  'api.console': {
    title: 'Called the console with an API key',
    describe: ({ count }) => [
      `Called the console, which accepts no API keys: ${many(count, 'request', 'requests')} denied within a minute`,
    ],
  },
  'api.rate_limited': {
    title: 'Exceeded the rate limit',
    describe: ({ count }) => [`Exceeded the rate limit: ${many(count, 'request', 'requests')} denied within a minute`],
  },
};

/** The actions that the filter offers, in order. */
export const knownActions: readonly { action: string; title: string }[] = Object.entries(actions).map(
  ([action, { title }]) => ({ action, title }),
);

/** Describes an entry's action, without the actor. An unknown action is returned as it is. */
export function describeAction(entry: ActivityEntry): Sentence {
  return Object.hasOwn(actions, entry.action)
    ? (actions[entry.action]?.describe(entry, entry.detail ?? {}) ?? [entry.action])
    : [entry.action];
}

/** Actions that the system takes by itself. Any other entry without a person is an operator's. */
const systemActions: ReadonlySet<string> = new Set([
  'webhook.park',
  'webhook.redelivered',
  'webhook.verified',
  'delivery.cancel',
]);

/** Describes the actor: the API key of a read, otherwise a person, the operator or the system. */
export function describeActor(entry: ActivityEntry): Sentence {
  if (entry.status !== null && entry.keyId !== null) return sentence`API key “${key(entry)}”`;
  if (entry.personId !== null) return [{ name: entry.personName ?? entry.personId }];
  const managedBy = text(entry.detail?.managedBy);
  if (managedBy !== '') return ['Operator (', { name: managedBy }, ')'];
  return [systemActions.has(entry.action) ? 'System' : 'Operator'];
}

/** Returns a sentence as plain text. */
export const textOf = (parts: Sentence): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.name)).join('');

function factorOf({ factor: kind }: Detail): string {
  return kind === 'passkey' ? 'a passkey' : 'an authenticator app';
}

function stepOf({ step }: Detail): string {
  const names: Record<string, string> = { passkey: 'a passkey', recovery_code: 'a recovery code' };
  return names[text(step)] ?? 'an authenticator app';
}
