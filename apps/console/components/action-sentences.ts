import type { AuditEntry } from '#domain/audit-log/search.ts';
import { reads } from './reads.ts';
import { nameFamily } from './text.ts';

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

/** A sentence in parts: pages isolate the names that people typed, and link those of objects. */
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
const key = ({ keyLabel, keyHint, keyId }: AuditEntry): Name => ({
  name: keyLabel || keyHint || keyId || 'unknown key',
  ...(keyId === null ? {} : { object: { kind: 'key', id: keyId } }),
});
const describeProvider = (value: unknown): string => {
  const { issuer, clientId } = (value ?? {}) as Detail;
  return issuer === undefined ? 'none' : `${text(issuer)} (client ${text(clientId)})`;
};
/** Describes both providers; the same one with another secret once. */
const describeProviderChange = (d: Detail): string =>
  describeProvider(d.from) === describeProvider(d.to)
    ? `${describeProvider(d.to)}${d.secretChanged === true ? ', with a new client secret' : ''}`
    : change(d, describeProvider);
/** Describes what ended with a provider, such as ", which unlinked 2 accounts and ended 1 session". */
function describeEnded({ ended, from }: Detail): string {
  if (typeof ended !== 'object' || ended === null) return '';
  const { accounts, sessions } = ended as Detail;
  const { isRequired } = (from ?? {}) as Detail;
  const unlinked = many(accounts, 'account', 'accounts');
  const ends = `, which unlinked ${unlinked} and ended ${many(sessions, 'session', 'sessions')}`;
  return isRequired === true ? `${ends}; passwords are accepted again` : ends;
}
const change = ({ from, to }: Detail, describe: (value: unknown) => string): string =>
  `${describe(to)}, before: ${describe(from)}`;
const named = (name: string | null, kind: ObjectRef['kind'], id: unknown, unknown: string): Name =>
  typeof id === 'string' ? { name: name || id, object: { kind, id } } : { name: name ?? unknown };
const member = ({ memberName, detail }: AuditEntry) =>
  named(memberName, 'member', detail?.memberId, 'a member who is not named');
const role = ({ roleName, detail }: AuditEntry) => named(roleName ?? text(detail?.key), 'role', detail?.roleId, '');
const webhook = ({ webhookName, detail }: AuditEntry) => named(webhookName, 'webhook', detail?.webhookId, '(unknown)');
/** A client, by the family's name; readers who may not see clients get no name. */
const client = ({ clientName, detail }: AuditEntry): Name =>
  typeof detail?.grantId === 'string'
    ? {
        name: clientName === null ? 'a client' : nameFamily(clientName),
        object: { kind: 'client', id: detail.grantId },
      }
    : { name: 'a client' };
/** The member who has or had the access in question. */
const getProfessional = ({ professionalName }: AuditEntry): Name => ({ name: professionalName ?? 'a professional' });
const delivery = ({ detail }: AuditEntry): Name =>
  typeof detail?.eventId === 'string' && typeof detail.webhookId === 'string'
    ? { name: detail.eventId, object: { kind: 'delivery', id: detail.eventId, of: detail.webhookId } }
    : { name: 'an event' };
const redelivery = ({ detail }: AuditEntry): Name =>
  typeof detail?.redeliveryId === 'string' && typeof detail.webhookId === 'string'
    ? { name: 'a redelivery', object: { kind: 'redelivery', id: detail.redeliveryId, of: detail.webhookId } }
    : { name: 'a redelivery' };
/** A second factor, or the step of signing in that used it. */
const factor = (kind: unknown) =>
  kind === 'passkey' ? 'a passkey' : kind === 'recovery_code' ? 'a recovery code' : 'an authenticator app';
/** Whether a detail is the old and new value of a setting. */
export const isChange = (value: unknown): value is { from: unknown; to: unknown } =>
  typeof value === 'object' && value !== null && 'from' in value && 'to' in value;
/** Whether it is those of a name. */
export const isRename = (value: unknown): value is { from: string; to: string } =>
  isChange(value) && typeof value.from === 'string';
const isOne = (changed: unknown): boolean => Array.isArray(changed) && changed.length === 1;
/** Counts the receivers of an event that acknowledged it, such as "1 of 2 webhooks". */
function countAcknowledged(receivers: unknown): string {
  const all: unknown[] = Array.isArray(receivers) ? receivers : [];
  const acknowledged = all.filter((each) => typeof each === 'object' && each !== null && 'acknowledgedAt' in each);
  return `${acknowledged.length} of ${many(all.length, 'webhook', 'webhooks')}`;
}
const many = (value: unknown, one: string, more: string) => `${value} ${value === 1 ? one : more}`;

/** What a change of a key changed, as its form names it. */
const keyFields: Record<string, string> = { label: 'name', allowedAddresses: 'allowed IP addresses' };
/** The same of a webhook. */
const webhookFields: Record<string, string> = { headers: 'custom headers', postsPerSecond: 'requests per second' };
const changedFields = ({ changed }: Detail, names: Record<string, string>) =>
  list(Array.isArray(changed) ? changed.map((field) => names[text(field)] ?? field) : []);

/** The settings of an organization, as their form names them. */
export const settingNames: Record<string, string> = {
  displayName: 'Display name',
  timeZone: 'Time zone',
  securityContact: 'Security contact',
  invitationDomains: 'Allowed address domains',
  passkeysRequired: 'Passkeys required',
  sessionHours: 'Session length',
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
  rejects_good_signatures: 'the receiver rejects correct signatures',
  no_response: 'no conclusive response',
};

/** Returns how a read ended, by its HTTP status, in words that its object follows. */
function readVerb(status: number): string {
  if (status < 400) return 'Read';
  if (status === 400) return 'Sent an invalid request for';
  return status === 404 ? 'Named an unknown organization in a request for' : 'Was denied access to';
}

/** Each action's title in the filter, and its description, which follows the actor's name. */
const actions: Record<string, [title: string, describe: (entry: AuditEntry, detail: Detail) => Sentence]> = {
  'key.create': ['Created an API key', (e) => sentence`Created API key “${key(e)}”`],
  'key.change': [
    'Edited an API key',
    (e, d) =>
      isRename(d.renamed) && d.renamed.from !== '' && d.renamed.to !== '' && isOne(d.changed)
        ? sentence`Renamed API key “${{ name: d.renamed.from }}” to “${key(e)}”`
        : sentence`Edited API key “${key(e)}”: ${changedFields(d, keyFields)}`,
  ],
  'key.rotate': ['Rotated an API key', (e) => sentence`Rotated an API key. New key: “${key(e)}”`],
  'key.revoke': ['Revoked an API key', (e) => sentence`Revoked API key “${key(e)}”`],
  'key.report': ['Reported a leaked key', (e) => sentence`Reported API key “${key(e)}” as leaked`],
  'webhook.create': ['Added a webhook', (e, d) => sentence`Added webhook ${webhook(e)} for ${text(d.host)}`],
  'webhook.change': [
    'Edited a webhook',
    (e, d) => sentence`Edited webhook ${webhook(e)}: ${changedFields(d, webhookFields)}`,
  ],
  'webhook.rotate_secret': [
    'Rotated a signing secret',
    (e) => sentence`Rotated the signing secret of webhook ${webhook(e)}`,
  ],
  'webhook.test': [
    'Sent a test event',
    (e, d) => sentence`Sent a test event (${text(d.eventType)}) to webhook ${webhook(e)}`,
  ],
  'webhook.tested': [
    'Received a test result',
    (e, d) => [
      d.delivered === true
        ? `Test event delivered (${text(d.eventType)}) to webhook `
        : `Test event failed (${text(d.eventType)}) for webhook `,
      webhook(e),
    ],
  ],
  'webhook.pause': ['Paused a webhook', (e) => sentence`Paused webhook ${webhook(e)}`],
  'webhook.suspend': [
    'Suspended a webhook',
    (e) => sentence`Suspended webhook ${webhook(e)}, because its receiver accepted no events for days`,
  ],
  'webhook.resume': ['Resumed a webhook', (e) => sentence`Resumed webhook ${webhook(e)}`],
  'webhook.detach': [
    'Detached a managed webhook',
    () => sentence`Detached a webhook, which members can change from now on`,
  ],
  'webhook.delete': ['Deleted a webhook', (e) => sentence`Deleted webhook ${webhook(e)}`],
  'webhook.redeliver': [
    'Started a redelivery',
    (e) => sentence`Started ${redelivery(e)} of events to webhook ${webhook(e)}`,
  ],
  'webhook.redelivered': [
    'Finished a redelivery',
    (e) => sentence`Finished ${redelivery(e)} of events to webhook ${webhook(e)}`,
  ],
  'webhook.cancel_redelivery': [
    'Cancelled a redelivery',
    (e) => sentence`Cancelled ${redelivery(e)} of events to webhook ${webhook(e)}`,
  ],
  'webhook.verify': ['Started a signature check', (e) => sentence`Started a signature check of webhook ${webhook(e)}`],
  'webhook.verified': [
    'Finished a signature check',
    (e, d) => [
      ...sentence`Finished a signature check of webhook ${webhook(e)}`,
      `: ${signatureResults[text(d.result)] ?? 'unknown result'}`,
    ],
  ],
  'delivery.redeliver': [
    'Redelivered an event',
    (e) => sentence`Redelivered event ${delivery(e)} to webhook ${webhook(e)}`,
  ],
  'delivery.retry': [
    'Retried a delivery',
    (e) => sentence`Retried the delivery of event ${delivery(e)} to webhook ${webhook(e)}`,
  ],
  'delivery.cancel': [
    'Cancelled deliveries',
    (e, d) =>
      d.eventId === undefined
        ? sentence`Cancelled ${many(d.deliveries ?? 1, 'delivery', 'deliveries')} to webhook ${webhook(e)}`
        : sentence`Cancelled the delivery of event ${delivery(e)} to webhook ${webhook(e)}`,
  ],
  'member.invite': ['Invited a member', (e) => sentence`Invited ${member(e)}`],
  'member.link': [
    'Created a sign-in link',
    (e, d) => [`Created a ${d.kind === 'recover' ? 'recovery' : 'sign-in'} link for `, member(e)],
  ],
  'member.join': ['Joined the organization', () => sentence`Joined the organization`],
  'member.change': [
    'Edited a member',
    (e, d) =>
      isRename(d.renamed)
        ? sentence`Renamed ${{ name: d.renamed.from }} to ${member(e)}`
        : sentence`Edited the details of ${member(e)}`,
  ],
  'member.suspend': ['Suspended a member', (e) => sentence`Suspended ${member(e)}`],
  'member.reinstate': ['Reinstated a member', (e) => sentence`Reinstated ${member(e)}`],
  'member.remove': [
    'Removed a member',
    (e, d) => (e.personId === d.memberId ? sentence`Left the organization` : sentence`Removed ${member(e)}`),
  ],
  'member.role_assign': ['Assigned a role', (e) => sentence`Assigned role ${role(e)} to ${member(e)}`],
  'member.role_unassign': ['Removed a role', (e) => sentence`Removed role ${role(e)} from ${member(e)}`],
  'role.create': ['Created a role', (e) => sentence`Created role ${role(e)}`],
  'role.change': ['Edited a role', (e) => sentence`Edited role ${role(e)}`],
  'role.delete': ['Deleted a role', (e) => sentence`Deleted role ${role(e)}`],
  'seat.give': ['Assigned a seat', (e) => sentence`Assigned a seat to ${client(e)}`],
  'seat.end': ['Ended a seat', (e) => sentence`Ended the seat of ${client(e)}`],
  'grant.end': ['Ended client access', (e) => sentence`Ended ${getProfessional(e)}’s access to ${client(e)}`],
  'grant.ended': [
    'Stopped showing client access',
    (e) => sentence`Stopped showing ${getProfessional(e)}’s access to ${client(e)} as active in reads`,
  ],
  'grant.notified': [
    'Recorded confirmations of receipt',
    (e, d) => {
      const [acknowledged, professional] = [countAcknowledged(d.receivers), getProfessional(e)];
      return sentence`Recorded that ${acknowledged} acknowledged the end of ${professional}’s access to ${client(e)}`;
    },
  ],
  'grant.move': [
    'Moved client access',
    (e) => sentence`Moved ${client(e)} from ${getProfessional(e)} to another professional`,
  ],
  'sign_in.recover': [
    'Recovered sign-in',
    (_, d) => sentence`Recovered sign-in with a recovery link and ${factor(d.factor)}`,
  ],
  'sign_in.confirm': [
    'Confirmed a sign-in',
    (e, d) =>
      d.by === 'orgctl'
        ? sentence`Confirmed the sign-in of ${member(e)}`
        : sentence`Confirmed their sign-in with a link`,
  ],
  'sso.set': [
    'Set the sign-in provider',
    (_, d) => [...sentence`Set the sign-in provider: ${describeProviderChange(d)}`, describeEnded(d)],
  ],
  'sso.require': [
    'Changed how members sign in',
    (_, d) => [
      d.to === true ? 'Required the sign-in provider' : 'Accepted passwords beside the sign-in provider again',
    ],
  ],
  'sso.remove': [
    'Removed the sign-in provider',
    (_, d) => [...sentence`Removed the sign-in provider ${describeProvider(d.from)}`, describeEnded(d)],
  ],
  'sign_in.provider': ['Signed in at the provider', () => sentence`Signed in at the organization’s provider`],
  'sign_in.link_provider': ['Linked an account', () => sentence`Linked their account at an organization’s provider`],
  'sign_in.unlink_provider': [
    'Unlinked an account',
    () => sentence`Unlinked their account at an organization’s provider`,
  ],
  'sign_in.password': ['Entered a correct password', () => sentence`Entered a correct password`],
  'sign_in.complete': ['Signed in', (_, d) => sentence`Signed in with ${factor(d.step)}`],
  'sign_in.step_up': ['Confirmed identity', (_, d) => sentence`Confirmed their identity with ${factor(d.step)}`],
  'sign_in.failure': [
    'Failed to sign in',
    (_, d) => [`Failed to sign in: ${steps[text(d.step)] ?? 'wrong credentials'}`],
  ],
  'sign_in.change_address': ['Changed a sign-in address', (e) => sentence`Changed the sign-in address of ${member(e)}`],
  'sign_in.free_address': [
    'Freed a sign-in address',
    (e) => sentence`Freed the sign-in address of ${member(e)}, who must set up sign-in again`,
  ],
  'factor.add': ['Added a second factor', (_, d) => [`Added ${factor(d.kind)} as a second factor`]],
  'factor.remove': ['Removed a second factor', (_, d) => [`Removed ${factor(d.kind)}`]],
  'recovery_codes.renew': ['Renewed recovery codes', () => sentence`Renewed their recovery codes`],
  'password.change': ['Changed a password', () => sentence`Changed their password`],
  'session.sign_out': ['Signed out', () => sentence`Signed out`],
  'session.end': ['Ended a session', () => sentence`Ended one of their sessions`],
  'session.end_oldest': [
    'Ended the oldest session',
    () => sentence`Ended their oldest session: a person has ten at most`,
  ],
  'session.end_all': ['Ended all sessions', (e) => sentence`Ended all sessions of ${member(e)}`],
  'session.end_others': ['Ended other sessions', () => sentence`Ended their other sessions`],
  'organization.change': [
    'Changed the settings',
    (_, d) => sentence`Changed the settings of the organization: ${changedFields(d, settingNames)}`,
  ],
  'audit_log.download': [
    'Downloaded the audit log',
    (_, d) =>
      d.format === 'evidence'
        ? sentence`Started to download an evidence package`
        : sentence`Downloaded the audit log as CSV`,
  ],
  'audit_log.evidence': [
    'Downloaded an evidence package',
    (_, d) => sentence`Downloaded an evidence package of ${text(d.from)} to ${text(d.to)}`,
  ],
  import: ['Imported data', () => sentence`Imported a file`],
  'import.backfill': ['Imported data without events', () => sentence`Imported a file without events`],
  'platform.put_organization': [
    'Platform changed the organization',
    () => sentence`Changed the organization’s details`,
  ],
  'platform.put_role': ['Platform changed a role', (e) => sentence`Created or edited role ${role(e)}`],
  'platform.delete_role': ['Platform deleted a role', (e) => sentence`Deleted role ${role(e)}`],
  'platform.put_member': [
    'Platform changed a member',
    (e, d) =>
      isRename(d.renamed)
        ? sentence`Renamed ${{ name: d.renamed.from }} to ${member(e)}`
        : d.created === true
          ? sentence`Added ${member(e)}`
          : sentence`Edited ${member(e)}: ${list(d.changed)}`,
  ],
  'family.erase': ['Erased a family', () => sentence`Erased a family`],
  'platform.put_family': ['Platform changed a family', () => sentence`Added or renamed a family`],
  'platform.start_grant': [
    'Platform started client access',
    (e) => sentence`Started ${getProfessional(e)}’s access to ${client(e)}`,
  ],
  'platform.plan_end': [
    'Platform planned an end',
    (e) => sentence`Changed the planned end of ${getProfessional(e)}’s access to ${client(e)}`,
  ],
  'platform.end_grant': [
    'Platform ended client access',
    (e) => sentence`Ended ${getProfessional(e)}’s access to ${client(e)}`,
  ],
  'platform.move_grant': [
    'Platform moved client access',
    (e) => sentence`Moved ${client(e)} from ${getProfessional(e)} to another professional`,
  ],
  'platform.give_seat': ['Platform assigned a seat', (e) => sentence`Assigned a seat to ${client(e)}`],
  'platform.end_seat': ['Platform ended a seat', (e) => sentence`Ended the seat of ${client(e)}`],
  'platform.put_plan': ['Platform changed the seat plan', () => sentence`Changed the seats that are paid by invoice`],
  'platform.put_subscription': ['Platform changed a subscription', () => sentence`Created or changed a subscription`],
  'platform.put_referral_code': [
    'Platform changed a referral code',
    () => sentence`Created or changed a referral code`,
  ],
  'platform.put_referral': ['Platform changed a referral', () => sentence`Created or changed a referral`],
  'platform.put_invoice': [
    'Platform changed a referral invoice',
    () => sentence`Created or changed a referral invoice`,
  ],
  'platform.put_family_days': [
    'Platform sent daily counts',
    (_, d) => sentence`Changed the counts of ${many(d.days ?? 0, 'day of a family', 'days of families')}`,
  ],
  ...Object.fromEntries(
    Object.entries(reads).map(([operation, what]) => [
      `api.${operation}`,
      [`Read ${what}`, ({ status }: AuditEntry) => [`${readVerb(status ?? 200)} ${what} (${operation})`]],
    ]),
  ),
  'api.none': ['Called an unknown endpoint', () => sentence`Called an unknown endpoint`],
  'api.console': [
    'Called the console with an API key',
    ({ count }) => [
      `Called the console, which accepts no API keys: ${many(count, 'request', 'requests')} denied within a minute`,
    ],
  ],
  'api.rate_limited': [
    'Exceeded the rate limit',
    ({ count }) => [`Exceeded the rate limit: ${many(count, 'request', 'requests')} denied within a minute`],
  ],
};

/** The actions that the filter offers, in order. */
export const knownActions: readonly { action: string; title: string }[] = Object.entries(actions).map(
  ([action, [title]]) => ({ action, title }),
);

/** Returns an action's title, which pages show instead of its code. That of an unknown action contains the code. */
export const getActionTitle = (action: string): string =>
  Object.hasOwn(actions, action) ? (actions[action]?.[0] ?? '') : `Unknown event (${action})`;

/** Describes an entry's action, without the actor. */
export function describeAction(entry: AuditEntry): Sentence {
  const [, describe] = Object.hasOwn(actions, entry.action) ? (actions[entry.action] ?? []) : [];
  return describe?.(entry, entry.detail ?? {}) ?? [getActionTitle(entry.action)];
}

/**
 * Actions of the system and of imports. The platform's are the system's too. Any other entry without a person is of an
 * operator with orgctl.
 */
const systemActions: ReadonlySet<string> = new Set([
  'webhook.suspend',
  'webhook.redelivered',
  'webhook.verified',
  'delivery.cancel',
  'grant.ended',
  'grant.notified',
  'import',
  'import.backfill',
  'member.change',
]);

/** Describes the actor: the API key of a read, otherwise a person, an object of Kubernetes, the system or support. */
export function describeActor(entry: AuditEntry): Sentence {
  if (entry.status !== null && entry.keyId !== null) return sentence`API key “${key(entry)}”`;
  if (entry.personId !== null) return [named(entry.personName, 'member', entry.personId, '')];
  const managedBy = text(entry.detail?.managedBy);
  if (managedBy !== '') return ['Operator (', { name: managedBy }, ')'];
  const isSystem = systemActions.has(entry.action) || entry.action.startsWith('platform.');
  return [isSystem || entry.detail?.by === 'platform' ? 'System' : 'Support'];
}

export const formatSentence = (parts: Sentence): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.name)).join('');
