import { describe, expect, it } from 'vitest';
import { ofKind, pick, regions, render } from '#test/render-charts.ts';

const names = (manifests: ReturnType<typeof render>, kind: string) =>
  ofKind(manifests, kind).map((one) => one.metadata.name.split('-').at(-1));

describe.each(regions)('PodDisruptionBudgets of %s', (region) => {
  it('let a drain take one pod at a time, and pods that are not ready at any time', () => {
    for (const { spec } of ofKind(render({ region }), 'PodDisruptionBudget')) {
      expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
      expect(spec.selector.matchLabels['app.kubernetes.io/instance']).toBe(region);
    }
  });
});

describe('PodDisruptionBudgets', () => {
  it('exist for two or more pods, because one pod’s would block every drain', () => {
    expect(names(render(), 'PodDisruptionBudget')).toEqual(['api', 'worker', 'console']);
    const one = { api: { autoscaling: { minReplicas: 1 } }, worker: { replicas: 1 }, console: { replicas: 0 } };
    expect(names(render({ values: one }), 'PodDisruptionBudget')).toEqual([]);
  });

  it('accept a percentage', () => {
    const values = { api: { podDisruptionBudget: { maxUnavailable: '25%' } } };
    expect(pick(render({ values }), 'PodDisruptionBudget', '-api').spec.maxUnavailable).toBe('25%');
  });
});

describe('HorizontalPodAutoscalers', () => {
  it('scale the Deployment of the same name on CPU', () => {
    const { metadata, spec } = pick(render(), 'HorizontalPodAutoscaler');
    expect(spec.scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name: metadata.name });
    expect([spec.minReplicas, spec.maxReplicas]).toEqual([2, 6]);
    expect(spec.metrics).toHaveLength(1);
    expect(spec).not.toHaveProperty('behavior');
  });

  it('accept more metrics and a pace', () => {
    const metric = {
      type: 'External',
      external: { metric: { name: 'overdue' }, target: { type: 'Value', value: '10' } },
    };
    const behavior = { scaleDown: { stabilizationWindowSeconds: 600 } };
    const values = { worker: { replicas: null, autoscaling: { enabled: true, metrics: [metric], behavior } } };
    const manifests = render({ values });
    expect(pick(manifests, 'HorizontalPodAutoscaler', '-worker').spec).toMatchObject({
      behavior,
      metrics: [{}, metric],
    });
    expect(pick(manifests, 'Deployment', '-worker').spec).not.toHaveProperty('replicas');
  });
});
