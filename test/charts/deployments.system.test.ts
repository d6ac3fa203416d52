import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { chart, listPods, ofKind, operatorValues, pick, regions, render } from '#test/render-charts.ts';

const deployment = (component: string, values: object = {}) => pick(render({ values }), 'Deployment', `-${component}`);
const getContainer = (component: string, values: object = {}) =>
  deployment(component, values).spec.template.spec.containers[0];

describe.each(regions)('Deployments of %s', (region) => {
  const manifests = render({ region });

  it('never remove a pod before its successor is ready', () => {
    for (const component of ['api', 'worker', 'console'])
      expect(pick(manifests, 'Deployment', `-${component}`).spec.strategy).toEqual({
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
      });
  });

  it('start each app from the one image with its own command', () => {
    for (const component of ['api', 'worker', 'console']) {
      const [container] = pick(manifests, 'Deployment', `-${component}`).spec.template.spec.containers;
      expect(container.command).toEqual(['node', `apps/${component}/main.ts`]);
      expect(container.image).toMatch(/^registry\.example\.com\/org-api@sha256:[0-9a-f]{64}$/);
    }
  });

  it('spread the pods of one version over zones and nodes, and can always be scheduled', () => {
    const pod = pick(manifests, 'Deployment', '-api').spec.template;
    expect(pod.spec.topologySpreadConstraints).toHaveLength(2);
    for (const constraint of pod.spec.topologySpreadConstraints) {
      expect(constraint).toMatchObject({ whenUnsatisfiable: 'ScheduleAnyway', matchLabelKeys: ['pod-template-hash'] });
      expect(pod.metadata.labels).toMatchObject(constraint.labelSelector.matchLabels);
    }
  });
});

describe('Deployments', () => {
  it('have no number of pods beside an autoscaler, and two without', () => {
    expect(deployment('api')).not.toHaveProperty('spec.replicas'); // the ci values scale the API
    expect(deployment('api', { api: { autoscaling: { enabled: false } } }).spec.replicas).toBe(2);
    expect(deployment('worker', { worker: { replicas: 0 } }).spec.replicas).toBe(0);
  });

  it('probe the process for liveness and the schema for readiness, on the port of each app', () => {
    for (const [component, port] of [
      ['api', 'http'],
      ['worker', 'metrics'],
      ['console', 'http'],
    ] as const) {
      const container = getContainer(component);
      expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port });
      expect(container.startupProbe.httpGet).toEqual({ path: '/livez', port });
      expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port });
      expect(container.ports.map((one: { name: string }) => one.name)).toContain(port);
    }
  });

  it('give a process five minutes to start on a busy node, also the operator', () => {
    const from = path.join(chart, '../org-api-operator');
    const operator = render({ from, region: null, release: 'operator', values: operatorValues });
    for (const { spec } of [...ofKind(render(), 'Deployment'), ...ofKind(operator, 'Deployment')]) {
      const { periodSeconds, failureThreshold } = spec.template.spec.containers[0].startupProbe;
      expect(periodSeconds * failureThreshold).toBe(300);
    }
  });

  it('keep serving for a while after a pod was removed, without a shell, and then drain within the grace period', () => {
    const { spec } = deployment('api', { api: { preStopSeconds: 7, drainDelayMs: 2_500 } }).spec.template;
    expect(spec.containers[0].lifecycle).toEqual({ preStop: { sleep: { seconds: 7 } } });
    expect(spec.terminationGracePeriodSeconds).toBe(7 + 3 + 20 + 10);
    expect(getContainer('api', { api: { preStopSeconds: 0 } })).not.toHaveProperty('lifecycle');
  });

  it('give a worker more time to stop than an attempt takes', () => {
    const { spec } = deployment('worker').spec.template;
    expect(spec.terminationGracePeriodSeconds).toBe(60);
    expect(spec.containers[0]).not.toHaveProperty('lifecycle');
  });

  it('may take as long as the migrations that new pods wait for', () => {
    const values = { progressDeadlineSeconds: 1200 };
    for (const { spec } of ofKind(render(), 'Deployment')) expect(spec.progressDeadlineSeconds).toBe(3600);
    for (const { spec } of ofKind(render({ values }), 'Deployment')) expect(spec.progressDeadlineSeconds).toBe(1200);
  });

  it('use an image by tag, by digest or by the chart’s version', () => {
    const image = (own: object) =>
      getContainer('api', { image: { repository: 'r.example.com/o', digest: '', ...own } }).image;
    expect(image({})).toBe('r.example.com/o:0.1.0');
    expect(image({ tag: '1.2.3' })).toBe('r.example.com/o:1.2.3');
    const digest = `sha256:${'a'.repeat(64)}`;
    expect(image({ digest })).toBe(`r.example.com/o@${digest}`);
    expect(image({ tag: '1.2.3', digest })).toBe(`r.example.com/o:1.2.3@${digest}`);
  });

  it('contain what an operator adds to a pod', () => {
    const own = {
      extraEnv: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=300' }],
      extraEnvFrom: [{ configMapRef: { name: 'more' } }],
      extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      topologySpreadConstraints: [{ topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
      podLabels: { team: 'reads' },
      podAnnotations: { note: 'x' },
      resources: { requests: { cpu: '1' } },
    };
    for (const component of ['api', 'worker', 'console']) {
      const { metadata, spec } = deployment(component, { [component]: own, imagePullSecrets: [{ name: 'pull' }] }).spec
        .template;
      expect(metadata.labels.team).toBe('reads');
      expect(metadata.annotations.note).toBe('x');
      expect(spec).toMatchObject({
        nodeSelector: own.nodeSelector,
        tolerations: own.tolerations,
        affinity: own.affinity,
        priorityClassName: 'high',
        dnsConfig: own.dnsConfig,
        topologySpreadConstraints: own.topologySpreadConstraints,
        imagePullSecrets: [{ name: 'pull' }],
      });
      expect(spec.volumes).toContainEqual(own.extraVolumes[0]);
      const [container] = spec.containers;
      expect(container.env).toContainEqual(own.extraEnv[0]);
      expect(container.envFrom).toEqual(own.extraEnvFrom);
      expect(container.volumeMounts).toContainEqual(own.extraVolumeMounts[0]);
      expect(container.resources.requests.cpu).toBe('1');
    }
  });

  it('roll out as an operator configures', () => {
    const strategy = { maxSurge: '50%', maxUnavailable: 1 };
    for (const component of ['api', 'worker', 'console'])
      expect(deployment(component, { [component]: { strategy } }).spec.strategy.rollingUpdate).toEqual(strategy);
  });

  it('can use an existing service account, which the chart then does not create', () => {
    for (const component of ['api', 'worker', 'console', 'migrations']) {
      const manifests = render({
        values: { [component]: { serviceAccount: { create: false, name: 'mine' } } },
      });
      const accounts = manifests.filter((one) => one.kind === 'ServiceAccount').map((one) => one.metadata.name);
      expect(accounts).toHaveLength(4);
      expect(accounts).not.toContain(`us-org-api-${component}`);
      const [, ...others] = listPods(manifests).sort((one) => (one.spec.serviceAccountName === 'mine' ? -1 : 1));
      for (const { spec } of others) expect(accounts).toContain(spec.serviceAccountName);
    }
    const named = render({ values: { api: { serviceAccount: { name: 'mine', annotations: { role: 'reads' } } } } });
    expect(pick(named, 'ServiceAccount', 'mine').metadata.annotations).toEqual({ role: 'reads' });
    expect(pick(named, 'Deployment', '-api').spec.template.spec.serviceAccountName).toBe('mine');
  });

  it('contain a checksum of their settings, which changes with secrets.revision', () => {
    const checksum = (values: object) =>
      deployment('api', values).spec.template.metadata.annotations['checksum/settings'];
    const now = checksum({});
    expect(checksum({ worker: { deliverySlots: 3 } })).toBe(now);
    expect(checksum({ api: { logLevel: 'debug' } })).not.toBe(now);
    expect(checksum({ secrets: { revision: '2026-11-21' } })).not.toBe(now);
  });

  it('do not restart for a new chart version alone', () => {
    for (const { labels } of listPods(render()))
      expect(Object.keys(labels)).not.toEqual(expect.arrayContaining([expect.stringMatching(/chart|version/)]));
  });

  it('omit the console until it is enabled', () => {
    const manifests = render({ values: { console: { enabled: false } } });
    expect(JSON.stringify(manifests)).not.toMatch(/console/i);
  });
});
