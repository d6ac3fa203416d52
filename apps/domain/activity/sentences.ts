import type { ActivityEntry } from './search.ts';

/** What a name in a sentence refers to. A delivery belongs to a webhook (`of`). */
export interface ObjectRef {
  kind: 'webhook' | 'client' | 'member' | 'role' | 'key' | 'delivery' | 'redelivery';
  id: string;
  of?: string;
}

/** A name that a person typed, or an id, and what it refers to. */
export interface Name {
  name: string;
  object?: ObjectRef;
}

/**
 * A sentence in parts. A page isolates the names that people typed, which may be in any script or
 * direction, and links those that refer to an object.
 */
export type Sentence = readonly (string | Name)[];

type Detail = Record<string, unknown>;

/** Builds a sentence from a template whose values are names. */
function sentence(texts: TemplateStringsArray, ...names: (string | Name)[]): Sentence {
  return texts.flatMap((text, index) => {
    const name = names[index];
    if (name === undefined) return [text];
    return [text, typeof name === 'string' ? { name } : name];
  });
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): string => (Array.isArray(value) ? value.map(text).join(', ') : '');
const key = ({ keyLabel, keyHint, keyId }: ActivityEntry): Name => ({
  name: keyLabel || keyHint || keyId || 'unknown key',
  ...(keyId === null ? {} : { object: { kind: 'key', id: keyId } }),
});
const named = (name: string | null, kind: ObjectRef['kind'], id: unknown, unknown: string): Name =>
  typeof id === 'string' ? { name: name || id, object: { kind, id } } : { name: name ?? unknown };
const member = ({ memberName, detail }: ActivityEntry) =>
  named(memberName, 'member', detail?.memberId, 'a member who is not named');
const role = ({ roleName, detail }: ActivityEntry) => named(roleName ?? text(detail?.key), 'role', detail?.roleId, '');
const webhook = ({ webhookName, detail }: ActivityEntry) =>
  named(webhookName, 'webhook', detail?.webhookId, '(unknown)');
/** A client, by the family's name; readers who may not see clients get no name. */
const client = ({ clientName, detail }: ActivityEntry): Name =>
  typeof detail?.grantId === 'string'
    ? {
        name: clientName === null ? 'a client' : `the ${clientName}${/family$/i.test(clientName) ? '' : ' family'}`,
        object: { kind: 'client', id: detail.grantId },
      }
    : { name: 'a client' };
const delivery = ({ detail }: ActivityEntry): Name =>
  typeof detail?.eventId === 'string' && typeof detail.webhookId === 'string'
    ? { name: detail.eventId, object: { kind: 'delivery', id: detail.eventId, of: detail.webhookId } }
    : { name: 'an event' };
const redelivery = ({ detail }: ActivityEntry): Name =>
  typeof detail?.redeliveryId === 'string' && typeof detail.webhookId === 'string'
    ? { name: 'a redelivery', object: { kind: 'redelivery', id: detail.redeliveryId, of: detail.webhookId } }
    : { name: 'a redelivery' };
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
  'webhook.create': {
    title: 'Added a webhook',
    describe: (e, d) => sentence`Added webhook ${webhook(e)} for ${text(d.host)}`,
  },
  'webhook.change': {
    title: 'Edited a webhook',
    describe: (e, d) => sentence`Edited webhook ${webhook(e)}: ${list(d.changed)}`,
  },
  'webhook.rotate_secret': {
    title: 'Rotated a signing secret',
    describe: (e) => sentence`Rotated the signing secret of webhook ${webhook(e)}`,
  },
  'webhook.test': {
    title: 'Sent a test event',
    describe: (e, d) => sentence`Sent a test event (${text(d.eventType)}) to webhook ${webhook(e)}`,
  },
  'webhook.tested': {
    title: 'Received a test result',
    describe: (e, d) => [
      d.delivered === true
        ? `Test event delivered (${text(d.eventType)}) to webhook `
        : `Test event failed (${text(d.eventType)}: ${text(d.cause)}) for webhook `,
      webhook(e),
    ],
  },
  'webhook.pause': { title: 'Paused a webhook', describe: (e) => sentence`Paused webhook ${webhook(e)}` },
  'webhook.park': {
    title: 'Suspended a webhook',
    describe: (e) => sentence`Suspended webhook ${webhook(e)}, because its receiver accepted no events for days`,
  },
  'webhook.resume': { title: 'Resumed a webhook', describe: (e) => sentence`Resumed webhook ${webhook(e)}` },
  'webhook.release': {
    title: 'Released a managed webhook',
    describe: () => sentence`Released a webhook, which members can change from now on`,
  },
  'webhook.delete': { title: 'Deleted a webhook', describe: (e) => sentence`Deleted webhook ${webhook(e)}` },
  'webhook.redeliver': {
    title: 'Started a redelivery',
    describe: (e) => sentence`Started ${redelivery(e)} of events to webhook ${webhook(e)}`,
  },
  'webhook.redelivered': {
    title: 'Finished a redelivery',
    describe: (e) => sentence`Finished ${redelivery(e)} of events to webhook ${webhook(e)}`,
  },
  'webhook.cancel_redelivery': {
    title: 'Cancelled a redelivery',
    describe: (e) => sentence`Cancelled ${redelivery(e)} of events to webhook ${webhook(e)}`,
  },
  'webhook.verify': {
    title: 'Started a signature check',
    describe: (e) => sentence`Started a signature check of webhook ${webhook(e)}`,
  },
  'webhook.verified': {
    title: 'Finished a signature check',
    describe: (e, d) => [
      ...sentence`Finished a signature check of webhook ${webhook(e)}`,
      `: ${signatureResults[text(d.result)] ?? 'unknown result'}`,
    ],
  },
  'delivery.redeliver': {
    title: 'Redelivered an event',
    describe: (e) => sentence`Redelivered event ${delivery(e)} to webhook ${webhook(e)}`,
  },
  'delivery.retry': {
    title: 'Retried a delivery',
    describe: (e) => sentence`Retried the delivery of event ${delivery(e)} to webhook ${webhook(e)}`,
  },
  'delivery.cancel': {
    title: 'Cancelled deliveries',
    describe: (e, d) =>
      d.eventId === undefined
        ? sentence`Cancelled ${many(d.deliveries ?? 1, 'delivery', 'deliveries')} to webhook ${webhook(e)}`
        : sentence`Cancelled the delivery of event ${delivery(e)} to webhook ${webhook(e)}`,
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
    describe: (e) => sentence`Assigned role ${role(e)} to ${member(e)}`,
  },
  'member.role_unassign': {
    title: 'Removed a role',
    describe: (e) => sentence`Removed role ${role(e)} from ${member(e)}`,
  },
  'role.create': { title: 'Created a role', describe: (e) => sentence`Created role ${role(e)}` },
  'role.change': { title: 'Edited a role', describe: (e) => sentence`Edited role ${role(e)}` },
  'role.delete': { title: 'Deleted a role', describe: (e) => sentence`Deleted role ${role(e)}` },
  'seat.give': { title: 'Assigned a seat', describe: (e) => sentence`Assigned a seat to ${client(e)}` },
  'seat.end': { title: 'Ended a seat', describe: (e) => sentence`Ended the seat of ${client(e)}` },
  'grant.end': {
    title: 'Ended client access',
    describe: (e) => sentence`Ended a professional’s access to ${client(e)}`,
  },
  'grant.move': {
    title: 'Moved client access',
    describe: (e) => sentence`Moved ${client(e)} to another professional`,
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

/** Actions that the system takes by itself. Any other row without a person is an operator's. */
const systemActions: ReadonlySet<string> = new Set([
  'webhook.park',
  'webhook.redelivered',
  'webhook.verified',
  'delivery.cancel',
]);

/** Describes the actor: the API key of a read, otherwise a person, the operator or the system. */
export function describeActor(entry: ActivityEntry): Sentence {
  if (entry.status !== null && entry.keyId !== null) return sentence`API key “${key(entry)}”`;
  if (entry.personId !== null) return [named(entry.personName, 'member', entry.personId, '')];
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
