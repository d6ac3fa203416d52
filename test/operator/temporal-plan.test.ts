import { describe, expect, it } from 'vitest';
import type { Region } from '../../apps/operator/kube/resources.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';
import { evaluateTemporal, planTemporal } from '../../apps/operator/region/temporal.ts';
import type { ObservedNamespace } from '../../apps/operator/region/temporal-namespace.ts';
import { regionIn } from './region.ts';

type Declared = Partial<Region['spec']['temporal']>;
const base = { address: 'temporal:7233', namespace: 'us', tls: false };
const declare = (temporal: Declared) => regionIn('test', { temporal: { ...base, ...temporal } }) as unknown as Region;
const found: ObservedNamespace = { retentionSeconds: 259_200 };
const observe = (temporal: ObservedRegion['temporal']): ObservedRegion => ({
  database: { reason: 'DatabaseUnreachable', message: '' },
  sealing: { reason: 'DatabaseUnreachable', message: '' },
  temporal,
});
const unavailable = { reason: 'TemporalUnreachable' as const, message: 'Temporal did not answer (14).' };

describe('the namespace of Temporal', () => {
  it.each<[string, Declared, ObservedRegion['temporal'], object[], string]>([
    ['is left alone by a spec that declares nothing of it', {}, found, [], 'True NamespaceAnswers'],
    ['is as the spec declares', { retention: '72h' }, found, [], 'True NamespaceAnswers'],
    [
      'gets the retention of the spec',
      { retention: '48h' },
      found,
      [{ kind: 'setRetention', retentionSeconds: 172_800 }],
      'False TemporalDiffers',
    ],
    [
      'is created with the retention of the spec',
      { retention: '48h' },
      null,
      [{ kind: 'createNamespace', retentionSeconds: 172_800 }],
      'False NamespaceMissing',
    ],
    ['is not created by a spec without retention', {}, null, [], 'False NamespaceMissing'],
    [
      'is not touched while Temporal is unavailable',
      { retention: '48h' },
      unavailable,
      [],
      'Unknown TemporalUnreachable',
    ],
  ])('%s', (_, declared, temporal, actions, expected) => {
    const region = declare(declared);
    const { status, reason } = evaluateTemporal(region, observe(temporal), []);

    expect(planTemporal(region, observe(temporal))).toEqual(actions);
    expect(`${status} ${reason}`).toBe(expected);
  });

  it('names the request that Temporal rejected', () => {
    const failure = { reason: 'TemporalRejected' as const, message: 'Temporal rejected UpdateNamespace (7).' };

    const failures = [{ ...failure, action: 'setRetention' }];
    expect(evaluateTemporal(declare({ retention: '48h' }), observe(found), failures)).toMatchObject({
      status: 'False',
      ...failure,
    });
  });
});
