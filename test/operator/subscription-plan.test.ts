import { describe, expect, it } from 'vitest';
import type { ManagedWebhook } from '#domain/webhooks/managed.ts';
import { type ObservedSubscription, planSubscription } from '../../apps/operator/webhook-subscription/plan.ts';
import { reportSubscription } from '../../apps/operator/webhook-subscription/report.ts';
import { type SubscriptionParts, subscription } from './subscription.ts';

const now = new Date('2026-03-02T00:00:00Z');
const webhook: ManagedWebhook = {
  organizationId: '00000000-0000-7000-8000-000000000001',
  id: '00000000-0000-7000-8000-00000000000a',
  url: 'https://hooks.example.com/',
  eventTypes: ['client.started', 'seat.given'],
  ordered: true,
  postsPerSecond: null,
  headerNames: [],
  state: 'active',
  suspendedReason: null,
  failingSince: null,
  secretId: '00000000-0000-7000-8000-00000000000b',
  secretCreatedAt: '2026-03-01T00:00:00.000Z',
  lastDeliveredAt: null,
};
const paused: Partial<ManagedWebhook> = { state: 'paused', suspendedReason: null };
const suspended: Partial<ManagedWebhook> = { state: 'suspended', suspendedReason: 'failures' };
const observed = (fields: Partial<ObservedSubscription> = {}): ObservedSubscription => ({
  now,
  isAllowed: true,
  webhook,
  secret: 'current',
  headers: 'current',
  ...fields,
});
const secretRef = { secretRef: { name: 'own' }, rotation: { overlap: '1h' } };
const rotating = { generate: { secretName: 'orders' }, rotation: { every: '24h', overlap: '1h' } };
const withHeaders = { headersSecretRef: { name: 'gateway' } };
const bare = { finalizers: [] };
const deleted = { deletionTimestamp: '2026-03-01T00:00:00Z' };

type Case = [title: string, parts: SubscriptionParts, observed: Partial<ObservedSubscription>, actions: string[]];

const cases: Case[] = [
  ['does nothing when everything is as declared', {}, {}, []],
  [
    'creates the webhook after the finalizer, and publishes its secret',
    { metadata: bare },
    { webhook: null, secret: 'missing' },
    ['addFinalizer', 'createWebhook', 'publishSecret'],
  ],
  [
    'pauses a new webhook before its secret is published',
    { spec: { suspend: true } },
    { webhook: null, secret: 'missing' },
    ['createWebhook', 'pauseWebhook', 'publishSecret'],
  ],
  ['creates nothing while its Secret is of another', {}, { webhook: null, secret: 'foreign' }, []],
  [
    'creates nothing without its referenced Secret',
    { spec: { secret: secretRef } },
    { webhook: null, secret: 'missing' },
    [],
  ],
  [
    'creates a webhook with a referenced secret',
    { spec: { secret: secretRef } },
    { webhook: null, secret: 'stale' },
    ['createWebhook'],
  ],
  [
    'creates and changes nothing for an organization that is not allowed',
    { spec: { suspend: true } },
    { isAllowed: false },
    [],
  ],
  ['publishes a secret that was stored before the operator was killed', {}, { secret: 'missing' }, ['publishSecret']],
  ['publishes a secret again that another caller changed', {}, { secret: 'stale' }, ['publishSecret']],
  ['leaves a Secret alone that is of another', {}, { secret: 'foreign' }, []],
  [
    'rotates a secret that is old enough, and publishes the new one',
    { spec: { secret: rotating } },
    {},
    ['rotateSecret', 'publishSecret'],
  ],
  ['rotates no secret before its time', { spec: { secret: rotating } }, { now: new Date(now.getTime() - 1) }, []],
  [
    'rotates to a referenced secret that changed',
    { spec: { secret: secretRef } },
    { secret: 'stale' },
    ['rotateSecret'],
  ],
  ['keeps the secret when the referenced Secret is gone', { spec: { secret: secretRef } }, { secret: 'missing' }, []],
  ['changes the order', { spec: { ordered: false } }, {}, ['changeWebhook']],
  ['bounds the posts', { spec: { postsPerSecond: 5 } }, {}, ['changeWebhook']],
  ['changes the URL', { spec: { url: 'https://other.example.com/' } }, {}, ['changeWebhook']],
  ['sets headers that differ', { spec: withHeaders }, { headers: 'stale' }, ['changeWebhook']],
  [
    'neither creates a webhook without its headers',
    { spec: withHeaders },
    { webhook: null, secret: 'missing', headers: 'missing' },
    [],
  ],
  [
    'nor changes a field while its headers are for another server',
    { spec: { ...withHeaders, url: 'https://other.example.com/', suspend: true } },
    { headers: 'elsewhere' },
    ['pauseWebhook'],
  ],
  ['ignores the order of event types', { spec: { eventTypes: ['seat.given', 'client.started'] } }, {}, []],
  ['pauses', { spec: { suspend: true } }, {}, ['pauseWebhook']],
  ['resumes', {}, { webhook: { ...webhook, ...paused } }, ['resumeWebhook']],
  ['leaves a suspension of a failing receiver', {}, { webhook: { ...webhook, ...suspended } }, []],
  [
    'pauses a suspended webhook when requested',
    { spec: { suspend: true } },
    { webhook: { ...webhook, ...suspended } },
    ['pauseWebhook'],
  ],
  ['detaches the webhook of a deleted object', { metadata: deleted }, {}, ['detachWebhook', 'removeFinalizer']],
  [
    'deletes the webhook of a deleted object when the policy says so',
    { metadata: deleted, spec: { reclaimPolicy: 'delete' } },
    {},
    ['deleteWebhook', 'removeFinalizer'],
  ],
  [
    'cleans up also when the organization is no longer allowed',
    { metadata: deleted },
    { isAllowed: false },
    ['detachWebhook', 'removeFinalizer'],
  ],
  [
    'only removes the finalizer once the webhook is gone',
    { metadata: deleted },
    { webhook: null },
    ['removeFinalizer'],
  ],
];

describe('the plan of a WebhookSubscription', () => {
  it.each(cases)('%s', (_, parts, fields, actions) => {
    expect(planSubscription(subscription(parts), observed(fields)).map(({ kind }) => kind)).toEqual(actions);
  });

  it('changes only the fields that differ', () => {
    const parts = { spec: { url: 'https://other.example.com/' } };
    expect(planSubscription(subscription(parts), observed())).toEqual([
      { kind: 'changeWebhook', url: 'https://other.example.com/' },
    ]);
  });

  it('sets headers with a new URL, also those that are as declared', () => {
    const spec = { url: 'https://other.example.com/', ...withHeaders };
    expect(planSubscription(subscription({ spec }), observed())).toEqual([
      { kind: 'changeWebhook', url: spec.url, setsHeaders: true },
    ]);
  });

  it('removes a bound that is not declared', () => {
    const bounded = observed({ webhook: { ...webhook, postsPerSecond: 5 } });
    expect(planSubscription(subscription({ spec: { postsPerSecond: 5 } }), bounded)).toEqual([]);
    expect(planSubscription(subscription(), bounded)).toEqual([{ kind: 'changeWebhook', postsPerSecond: null }]);
  });
});

describe('the status of a WebhookSubscription', () => {
  const reportConditions = (parts: SubscriptionParts, fields: Partial<ObservedSubscription>) =>
    reportSubscription(subscription(parts), observed(fields), []).conditions.map(
      ({ type, status, reason }) => `${type} ${status} ${reason}`,
    );

  it.each<[Partial<ObservedSubscription>, string[]]>([
    [{}, ['Ready True Applied', 'SecretPublished True Published', 'Delivering True Active']],
    [
      { webhook: { ...webhook, ...suspended } },
      ['Ready True Applied', 'SecretPublished True Published', 'Delivering False Suspended'],
    ],
    [
      { secret: 'foreign', webhook: null },
      ['Ready False SecretNotOwned', 'SecretPublished False SecretNotOwned', 'Delivering Unknown Pending'],
    ],
    [
      { isAllowed: false },
      ['Ready False OrganizationNotAllowed', 'SecretPublished True Published', 'Delivering True Active'],
    ],
  ])('shows what is true: %j', (fields, conditions) => {
    expect(reportConditions({}, fields)).toEqual(conditions);
  });

  it('keeps what is known when the operator cannot look', () => {
    const status = { id: webhook.id, activeKeyId: webhook.secretId, conditions: [] };
    const failure = { reason: 'DatabaseUnreachable' as const, message: 'PostgreSQL does not answer.' };
    const report = reportSubscription(subscription({ status }), null, [failure]);
    expect(report).toMatchObject({ id: webhook.id, activeKeyId: webhook.secretId });
    expect(report.conditions.map(({ status: holds, reason }) => `${holds} ${reason}`)).toEqual([
      'False DatabaseUnreachable',
      'Unknown DatabaseUnreachable',
      'Unknown DatabaseUnreachable',
    ]);
  });
});
