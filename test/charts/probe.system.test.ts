import { describe, expect, it } from 'vitest';
import { pick, regions, render } from '#test/render-charts.ts';

describe.each(regions)('helm test of %s', (region) => {
  const manifests = render({ region });
  const pod = pick(manifests, 'Pod');

  it('runs only on request, and keeps its pod only when it fails', () => {
    expect(pod.metadata.annotations).toMatchObject({
      'helm.sh/hook': 'test',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    });
    expect(pod.spec).toMatchObject({ restartPolicy: 'Never', activeDeadlineSeconds: 120 });
  });

  it('reads from this release’s own Service', () => {
    const { value } = pod.spec.containers[0].env.find((one: { name: string }) => one.name === 'API_URL');
    expect(value).toBe(`http://${pick(manifests, 'Service', '-api').metadata.name}:80`);
  });

  it('receives at one exact address, which only the probe’s webhook may reach', () => {
    const worker = pick(manifests, 'Deployment', '-worker').spec.template.spec.containers[0];
    const setting = (name: string) => worker.env.find((one: { name: string }) => one.name === name)?.value;
    expect(setting('PROBE_WEBHOOK_ALLOW')).toBe(pick(manifests, 'Service', '-probe').spec.clusterIP);
    expect(setting('PROBE_WEBHOOK_ID')).toMatch(/^[0-9a-f-]{36}$/);
    expect(setting('WEBHOOK_ALLOW')).toBeUndefined();
  });
});

describe('helm test', () => {
  it('uses the given Secret', () => {
    const values = { probe: { existingSecret: 'mine' } };
    const { sources } = pick(render({ values }), 'Pod').spec.volumes[1].projected;
    expect(sources).toContainEqual({ secret: { name: 'mine', items: [{ key: 'key', path: 'PROBE_KEY' }] } });
  });

  it('contains what an operator adds to its pod, without other changes', () => {
    const probe = { podLabels: { team: 'reads' }, podAnnotations: { note: 'x', 'helm.sh/hook': 'pre-install' } };
    const { metadata } = pick(render({ values: { probe } }), 'Pod');
    expect(metadata.labels).toMatchObject({ team: 'reads', 'app.kubernetes.io/component': 'probe' });
    expect(metadata.annotations).toMatchObject({ note: 'x', 'helm.sh/hook': 'test' });
  });

  it('is absent in a release without it', () => {
    expect(JSON.stringify(render({ values: { probe: { enabled: false } } }))).not.toMatch(/probe"|PROBE/);
  });
});
