import { describe, expect, it } from 'vitest';
import type { RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import type { Reason } from '../../apps/operator/controller/reasons.ts';
import {
  type ObservedReplay,
  planReplay,
  replayFinalizer,
  reportReplay,
} from '../../apps/operator/delivery-replay/plan.ts';
import { type DeliveryReplay, group } from '../../apps/operator/resources.ts';

const now = new Date('2026-03-02T00:00:00Z');
const redelivery: RedeliveryRow = {
  id: '00000000-0000-7000-8000-00000000000c',
  organizationId: '00000000-0000-7000-8000-000000000001',
  webhookId: '00000000-0000-7000-8000-00000000000a',
  from: '2026-03-01T00:00:00.000Z',
  to: '2026-03-02T00:00:00.000Z',
  failedSince: null,
  state: 'running',
  endReason: null,
  requestedBy: null,
  requestedAt: '2026-03-02T00:00:00.000Z',
  cancelRequestedAt: null,
  finishedAt: null,
  seen: 30,
  matched: 12,
  queued: 9,
  retriesRequested: 2,
};

interface Parts {
  metadata?: Partial<DeliveryReplay['metadata']>;
  spec?: Partial<DeliveryReplay['spec']>;
  status?: DeliveryReplay['status'];
}

const replay = ({ metadata, spec, status }: Parts = {}): DeliveryReplay => ({
  apiVersion: `${group}/v1alpha1`,
  kind: 'DeliveryReplay',
  metadata: {
    name: 'outage',
    namespace: 'us',
    uid: '00000000-0000-4000-8000-000000000002',
    generation: 1,
    resourceVersion: '1',
    creationTimestamp: '2026-03-01T00:00:00Z',
    finalizers: [replayFinalizer],
    ...metadata,
  },
  spec: {
    subscription: 'orders',
    from: '2026-03-01T00:00:00Z',
    to: '2026-03-02T00:00:00Z',
    onlyFailed: true,
    rate: 20,
    dryRun: false,
    ttlSecondsAfterFinished: 60,
    ...spec,
  },
  ...(status === undefined ? {} : { status }),
});
const observed = (fields: Partial<ObservedReplay> = {}): ObservedReplay => ({
  now,
  redelivery: null,
  counted: null,
  ...fields,
});
const finished = (finishedAt: string) => ({ finishedAt, matched: 12, redelivered: 11, failed: 1, conditions: [] });
const deleted = { deletionTimestamp: '2026-03-01T00:00:00Z' };

const cases: [title: string, parts: Parts, observed: Partial<ObservedReplay>, actions: string[]][] = [
  [
    'asks for the redelivery after the finalizer',
    { metadata: { finalizers: [] } },
    {},
    ['addFinalizer', 'requestRedelivery'],
  ],
  ['asks for it once', {}, { redelivery }, []],
  ['asks for nothing in a dry run', { spec: { dryRun: true } }, { counted: { events: 3, isCapped: false } }, []],
  ['stays until its TTL has expired', { status: finished('2026-03-01T23:59:01Z') }, {}, []],
  ['is deleted when its TTL has expired', { status: finished('2026-03-01T23:59:00Z') }, {}, ['deleteReplay']],
  [
    'cancels what runs when it is deleted',
    { metadata: deleted },
    { redelivery },
    ['cancelRedelivery', 'removeFinalizer'],
  ],
  [
    'cancels nothing that has ended',
    { metadata: deleted },
    { redelivery: { ...redelivery, state: 'done' } },
    ['removeFinalizer'],
  ],
];

describe('the plan of a DeliveryReplay', () => {
  it.each(cases)('%s', (_, parts, fields, actions) => {
    expect(planReplay(replay(parts), observed(fields)).map(({ kind }) => kind)).toEqual(actions);
  });
});

describe('the status of a DeliveryReplay', () => {
  const conditionsOf = ({ conditions }: ReturnType<typeof reportReplay>) =>
    conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);

  it.each<[string, Partial<RedeliveryRow>, string[]]>([
    ['while it runs', {}, ['Complete False Running', 'Failed False Running']],
    ['when all were sent', { state: 'done' }, ['Complete True Redelivered', 'Failed False Redelivered']],
    [
      'when the webhook was paused',
      { state: 'ended', endReason: 'webhook_parked' },
      ['Complete False WebhookParked', 'Failed True WebhookParked'],
    ],
    ['when it was cancelled', { state: 'cancelled' }, ['Complete False Cancelled', 'Failed True Cancelled']],
  ])('counts what was sent again %s', (_, fields, conditions) => {
    const report = reportReplay(replay(), observed({ redelivery: { ...redelivery, ...fields } }), null);
    expect(report).toMatchObject({ matched: 12, redelivered: 11, failed: 1 });
    expect(conditionsOf(report)).toEqual(conditions);
    expect(report.finishedAt === undefined).toBe(fields.state === undefined);
  });

  it('is complete after a dry run, which sends nothing', () => {
    const report = reportReplay(replay(), observed({ counted: { events: 7, isCapped: false } }), null);
    expect(report).toMatchObject({ matched: 7, redelivered: 0, failed: 0, finishedAt: '2026-03-02T00:00:00Z' });
    expect(conditionsOf(report)).toEqual(['Complete True DryRun', 'Failed False DryRun']);
  });

  it('fails when a later try would be refused too, and waits otherwise', () => {
    const refused = (reason: Reason) => reportReplay(replay(), observed(), { reason, message: 'No.' });
    expect(conditionsOf(refused('EventTooOld'))).toEqual(['Complete False EventTooOld', 'Failed True EventTooOld']);
    expect(refused('RedeliveryUnderWay')).not.toHaveProperty('finishedAt');
  });

  it('stays as it ended', () => {
    const status = finished('2026-03-01T00:00:00Z');
    expect(reportReplay(replay({ status }), observed({ redelivery }), null)).toEqual(status);
  });
});
