import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { currentMigration } from '#domain/db/schema-version.ts';
import type { Sealing } from '#domain/resealing/count.ts';
import { ledgerFaults } from '#domain/webhooks/ledger.ts';
import type { Failure } from '../../apps/operator/kube/custom-resource.ts';
import type { Region } from '../../apps/operator/kube/resources.ts';
import { planSwitch } from '../../apps/operator/region/delivery-switch.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';
import { reportRegion } from '../../apps/operator/region/report.ts';
import { planSealing } from '../../apps/operator/region/sealing.ts';
import type { ObservedNamespace } from '../../apps/operator/region/temporal-namespace.ts';
import { regionWith } from './region.ts';

const region = regionWith();
const database = {
  migrations: [currentMigration],
  failedMigration: null,
  waiting: 3,
  overdue: 0,
  oldestDueAt: null,
  suspendedWebhooks: 0,
  peppers: [{ version: 1, count: 4 }],
  ledger: { difference: 0, missing: 0, surplus: 0, unexplained: 0 },
  deliverySwitch: { state: 'running' as const, changedAt: '2026-01-01T00:00:00.000Z', underWay: 0, isDrained: false },
};
const sealing: Sealing = {
  newest: 2,
  counts: [{ table: 'webhook_secret', version: 2, rows: 5 }],
  unused: [1],
  missing: [],
};
const temporal: ObservedNamespace = { retentionSeconds: 86_400 };
const healthy: ObservedRegion = { database, temporal, sealing };

/** Type, status and reason of each condition that is not true; Ready first. */
const listProblems = (observed: ObservedRegion | null) =>
  reportRegion(region, observed, [])
    .conditions.filter(({ status }) => status !== 'True')
    .map(({ type, status, reason }) => `${type} ${status} ${reason}`);

describe('the status of a Region', () => {
  it('is Ready when schema, Temporal and ledger are as they should be', () => {
    expect(listProblems(healthy)).toEqual([]);
    expect(reportRegion(region, healthy, [])).toMatchObject({
      schema: { applied: currentMigration, expected: currentMigration },
      deliveries: { waiting: 3, overdue: 0, ledgerDifference: 0 },
    });
  });

  it('is Ready when the database is newer than the operator', () => {
    const newer = { ...healthy, database: { ...database, migrations: [...database.migrations, '9999-newer'] } };
    expect(listProblems(newer)).toEqual([]);
    expect(reportRegion(region, newer, []).conditions).toContainEqual({
      type: 'SchemaCurrent',
      status: 'True',
      reason: 'NewerThanOperator',
      message: 'Migration 9999-newer is applied; this operator does not know it.',
    });
  });

  it.each([
    [
      'migrations are pending',
      { database: { ...database, migrations: ['0001'] } },
      'SchemaCurrent',
      'MigrationsPending',
    ],
    [
      'a migration of the release failed, also when the operator is older and does not know it',
      { database: { ...database, failedMigration: { names: ['9999'], code: '22012' } } },
      'SchemaCurrent',
      'MigrationFailed',
    ],
    ...ledgerFaults.map((name): [string, Partial<ObservedRegion>, string, string] => [
      `the ledger does not add up: ${name}`,
      { database: { ...database, ledger: { ...database.ledger, [name]: -1 } } },
      'LedgerBalanced',
      'LedgerDifference',
    ]),
  ])('says that %s', (_, change, type, reason) => {
    expect(listProblems({ ...healthy, ...change })).toEqual([`Ready False ${reason}`, `${type} False ${reason}`]);
  });

  it('judges the ledger by everything that its alert reads', () => {
    const rules = readFileSync(path.join(import.meta.dirname, '../../charts/org-api/rules/webhooks.yaml'), 'utf8');
    const [, expression = ''] = /alert: OrgApiLedgerDifference\n([\s\S]*?)for:/.exec(rules) ?? [];
    const read = new Set([...expression.matchAll(/org_api_ledger_(\w+)/g)].map(([, name]) => name));

    expect([...read].toSorted()).toEqual([...ledgerFaults].toSorted());
  });

  it('reports Unknown for what could not be read, and still shows the rest', () => {
    const unavailable = { reason: 'TemporalUnreachable' as const, message: 'Temporal did not answer (14).' };
    const observed = { ...healthy, temporal: unavailable };

    expect(listProblems(observed)).toEqual([
      'Ready Unknown TemporalUnreachable',
      'TemporalReady Unknown TemporalUnreachable',
    ]);
    expect(reportRegion(region, observed, []).deliveries?.waiting).toBe(3);
  });
});

describe('the deliveries of a Region', () => {
  const observe = (
    deliverySwitch: Partial<typeof database.deliverySwitch> | { state: 'paused' | 'draining' },
  ): ObservedRegion => ({
    ...healthy,
    database: { ...database, deliverySwitch: { ...database.deliverySwitch, ...deliverySwitch } },
  });
  const withState = (state: 'Running' | 'Paused' | 'Draining'): Region => ({
    ...region,
    spec: { ...region.spec, delivery: { state } },
  });

  it.each([
    ['running', { state: 'running' }, 'True Sending'],
    ['paused', { state: 'paused' }, 'False Paused'],
    ['draining with an attempt under way', { state: 'draining', underWay: 1 }, 'False Draining'],
    ['drained', { state: 'draining', isDrained: true }, 'False Drained'],
  ] as const)('are shown as %s, and the Region stays Ready', (_, deliverySwitch, expected) => {
    const { conditions, deliveries } = reportRegion(region, observe(deliverySwitch), []);
    const find = (name: string) => conditions.find(({ type }) => type === name);

    expect(`${find('Delivering')?.status} ${find('Delivering')?.reason}`).toBe(expected);
    expect(find('Ready')?.status).toBe('True');
    expect(deliveries?.state?.toLowerCase()).toBe(deliverySwitch.state);
  });

  it('are unknown when PostgreSQL cannot be read, and nothing is done', () => {
    const unreadable: ObservedRegion = {
      ...healthy,
      database: { reason: 'DatabaseUnreachable', message: 'Unavailable.' },
    };

    expect(listProblems(unreadable)).toContain('Delivering Unknown DatabaseUnreachable');
    expect(planSwitch(withState('Paused'), unreadable)).toEqual([]);
  });

  it('are set to what the spec declares, and left alone without it', () => {
    expect(planSwitch(withState('Draining'), healthy)).toEqual([{ kind: 'setDeliverySwitch', state: 'draining' }]);
    expect(planSwitch(withState('Running'), observe({ state: 'paused' }))).toEqual([
      { kind: 'setDeliverySwitch', state: 'running' },
    ]);
    expect(planSwitch(withState('Paused'), observe({ state: 'paused' }))).toEqual([]);
    expect(planSwitch(region, observe({ state: 'paused' }))).toEqual([]);
  });
});

describe('the sealing keys of a Region', () => {
  const apps = { table: 'second_factor', version: 1, rows: 3 } as const;
  const old: Sealing = { ...sealing, counts: [...sealing.counts, apps], unused: [] };
  const withVersion = (resealWith: number): Region => ({
    ...region,
    spec: { ...region.spec, sealing: { resealWith, databaseSecretRef: { name: 'org-api' } } },
  });
  const reseal = { kind: 'resealSecrets', version: 2 };

  it.each<[string, Sealing, string]>([
    ['the newest key seals everything', sealing, 'True NewestKeySeals'],
    ['an older key seals something', old, 'False OldKeySeals'],
    ['something cannot be read in any form', { ...sealing, counts: [{ ...apps, version: null }] }, 'False OldKeySeals'],
    ['a key that is needed is gone', { ...old, missing: [1] }, 'False SealingKeyMissing'],
  ])('are judged when %s, and the Region stays Ready', (_, found, expected) => {
    const { conditions } = reportRegion(region, { ...healthy, sealing: found }, []);
    const find = (name: string) => conditions.find(({ type }) => type === name);

    expect(`${find('KeysFresh')?.status} ${find('KeysFresh')?.reason}`).toBe(expected);
    expect(find('Ready')?.status).toBe('True');
  });

  it('are counted in the status by version, with the peppers of API keys', () => {
    expect(reportRegion(region, { ...healthy, sealing: old }, []).secrets).toEqual({
      sealed: [
        { version: 1, count: 3 },
        { version: 2, count: 5 },
      ],
      peppers: [{ version: 1, count: 4 }],
    });
  });

  it('seal everything again only when the spec names the newest key, and an older one seals something', () => {
    const observed = { ...healthy, sealing: old };
    expect(planSealing(withVersion(2), observed)).toEqual([reseal]);
    expect(planSealing(region, observed)).toEqual([]);
    expect(planSealing(withVersion(3), observed)).toEqual([]);
    expect(planSealing(withVersion(2), healthy)).toEqual([]);
    expect(planSealing(withVersion(2), { ...healthy, sealing: { ...old, missing: [1] } })).toEqual([]);
  });

  it('say why sealing again failed', () => {
    const failure = { reason: 'SecretNotUnsealed', message: 'One could not be opened.' } as const;
    const failures = [{ ...failure, action: 'resealSecrets' }];
    const { conditions } = reportRegion(withVersion(2), { ...healthy, sealing: old }, failures);

    expect(conditions.find(({ type }) => type === 'KeysFresh')).toMatchObject({ status: 'False', ...failure });
  });
});

describe('the failed actions of a Region', () => {
  const failures = [
    { action: 'setDeliverySwitch', reason: 'InternalError', message: 'Why 1.' },
    { action: 'resealSecrets', reason: 'SecretNotUnsealed', message: 'Why 2.' },
    { action: 'setRetention', reason: 'TemporalRejected', message: 'Why 3.' },
  ] as const;
  const shown = {
    setDeliverySwitch: ['Delivering True InternalError Deliveries are sent. Why 1.'],
    resealSecrets: ['KeysFresh False SecretNotUnsealed Why 2.'],
    setRetention: ['Ready False TemporalRejected Why 3.', 'TemporalReady False TemporalRejected Why 3.'],
  };
  const show = (some: readonly Failure[]) =>
    reportRegion(region, healthy, some)
      .conditions.filter(({ message }) => message.includes('Why'))
      .map(({ type, status, reason, message }) => `${type} ${status} ${reason} ${message}`);

  it.each(failures)('are shown by the condition of $action, and by no other', (failure) => {
    expect(show([failure])).toEqual(shown[failure.action]);
  });

  it('are shown each by its condition when several fail', () => {
    expect(show(failures).toSorted()).toEqual(Object.values(shown).flat().toSorted());
  });
});
