import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { listPods, type Manifest, ofKind, operatorPeers, operatorValues, pick, render } from '#test/render-charts.ts';
import { renderOperator, watched } from './promtool.ts';

const root = path.join(import.meta.dirname, '../..');
const chart = path.join(root, 'charts/org-api-operator');
const read = (name: string) => readFileSync(path.join(chart, name), 'utf8');
const rendered = (values = {}) =>
  render({
    from: chart,
    region: null,
    release: 'operator',
    namespace: 'test',
    values: { ...operatorValues, ...values },
  });

describe('the chart of the operator', () => {
  it('has the version of the product', () => {
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
    const { version: own, appVersion } = parse(read('Chart.yaml')) as { version: string; appVersion: string };

    expect([own, appVersion]).toEqual([version, version]);
  });

  it('runs two replicas without privileges, on a file system that cannot be written', () => {
    const { spec } = pick(rendered(), 'Deployment');
    const [container] = spec.template.spec.containers;

    expect(spec.replicas).toBe(2);
    expect(spec.template.spec.securityContext.runAsNonRoot).toBe(true);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('has as long for a rollout as the values say', () => {
    const getDeadline = (values: object) => pick(rendered(values), 'Deployment').spec.progressDeadlineSeconds;

    expect([getDeadline({}), getDeadline({ progressDeadlineSeconds: 1200 })]).toEqual([600, 1200]);
  });

  it('allows the operator to read only the Secrets that the values name, unless it carries out webhooks', () => {
    const listVerbs = (values: object) =>
      ofKind(rendered(values), 'Role')
        .flatMap(({ rules }) => rules)
        .filter(({ resources }: { resources: string[] }) => resources.includes('secrets'));

    expect(listVerbs({ webhooks: { enabled: true } })).toHaveLength(2);
    expect(listVerbs({})).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['org-api'], verbs: ['get'] },
    ]);
  });
});

describe('the pod of the operator', () => {
  it('contains what an operator adds to it, as the other pods', () => {
    const own = {
      priorityClassName: 'high',
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      topologySpreadConstraints: [{ topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
    };
    const values = {
      ...own,
      fullnameOverride: 'keeper',
      podLabels: { team: 'reads' },
      podAnnotations: { note: 'x' },
      extraEnv: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=300' }],
      extraEnvFrom: [{ configMapRef: { name: 'more' } }],
      extraVolumes: [{ name: 'ca', secret: { secretName: 'ca' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
      serviceAccount: { create: false, name: 'mine' },
    };
    const manifests = rendered(values);
    const { metadata, spec } = pick(manifests, 'Deployment', 'keeper').spec.template;
    const [container] = spec.containers;

    expect(metadata).toMatchObject({ labels: { team: 'reads' }, annotations: { note: 'x' } });
    expect(spec).toMatchObject({ ...own, serviceAccountName: 'mine', volumes: values.extraVolumes });
    expect(container).toMatchObject({ envFrom: values.extraEnvFrom, volumeMounts: values.extraVolumeMounts });
    expect(container.env).toContainEqual(values.extraEnv[0]);
    expect(pick(manifests, 'RoleBinding').subjects[0].name).toBe('mine');
    expect(ofKind(manifests, 'ServiceAccount')).toEqual([]);
  });

  it('of every hook and test of both charts has the labels and annotations of its section, and none for null', () => {
    const own = { podLabels: { team: 'reads' }, podAnnotations: { 'sidecar.example.com/inject': 'false' } };
    const podsWith = (section: object) => [
      ...rendered({ webhooks: { enabled: true }, ...section }),
      ...render({ values: { api: section, worker: section, console: section, migrations: section, probe: section } }),
    ];
    const metadata = podsWith(own).flatMap(({ kind, metadata: pod, spec }) =>
      kind === 'Pod' ? [pod] : spec?.template?.spec === undefined ? [] : [spec.template.metadata],
    );
    expect(metadata).toHaveLength(7);
    for (const { labels, annotations } of metadata) {
      expect(labels).toMatchObject(own.podLabels);
      expect(annotations).toMatchObject(own.podAnnotations);
    }
    expect(listPods(podsWith({ podLabels: null, podAnnotations: null }))).toHaveLength(7);
  });

  it('is spread, and can be drained, from two replicas on', () => {
    const { spec } = pick(rendered(), 'PodDisruptionBudget');
    const pod = pick(rendered(), 'Deployment').spec.template;

    expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect(pod.metadata.labels).toMatchObject(spec.selector.matchLabels);
    expect(pod.spec.topologySpreadConstraints).toHaveLength(2);
    expect(ofKind(rendered({ replicas: 1 }), 'PodDisruptionBudget')).toEqual([]);
    for (const maxUnavailable of [0, '0%'])
      expect(() => rendered({ podDisruptionBudget: { maxUnavailable } })).toThrow(
        '/podDisruptionBudget/maxUnavailable',
      );
  });

  it('leaves the security contexts to a cluster that sets them, as OpenShift does', () => {
    const none = { podSecurityContext: null, containerSecurityContext: null };
    for (const { spec } of listPods([...rendered(none), ...render({ values: none })]))
      expect([spec.securityContext, spec.containers[0].securityContext]).toEqual([undefined, undefined]);
  });

  it('does not start with a variable that the chart sets, or a proxy', () => {
    const withVariable = (name: string) => () => rendered({ extraEnv: [{ name, value: 'x' }] });
    expect(withVariable('REGION')).toThrow('extraEnv sets REGION, which the chart sets itself');
    expect(withVariable('HTTPS_PROXY')).toThrow('extraEnv sets HTTPS_PROXY, but org-api connects');
  });
});

describe('the NetworkPolicy of the operator', () => {
  it('lets its pods reach DNS and the peers of its three servers only, and be read by metrics readers', () => {
    const manifests = rendered();
    const { podSelector, policyTypes, ingress, egress } = pick(manifests, 'NetworkPolicy').spec;
    const dns = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } };

    expect(pick(manifests, 'Deployment').spec.template.metadata.labels).toMatchObject(podSelector.matchLabels);
    expect(policyTypes).toEqual(['Ingress', 'Egress']);
    expect(ingress).toEqual([{ ports: [{ port: 'metrics' }], from: [{ namespaceSelector: {} }] }]);
    expect(egress).toEqual([
      {
        to: [dns],
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
      { ...operatorPeers.apiServer, ports: [{ port: 6443 }] },
      { ...operatorPeers.database, ports: [{ port: 5432 }] },
      { ...operatorPeers.temporal, ports: [{ port: 7233 }] },
    ]);
  });

  it('is rejected without a server’s peers, and absent when it is switched off', () => {
    for (const server of ['apiServer', 'database', 'temporal'])
      expect(() => rendered({ networkPolicy: { ...operatorPeers, [server]: { to: [] } } })).toThrow(
        `networkPolicy.${server}.to is empty: name the peers`,
      );
    expect(ofKind(rendered({ networkPolicy: { enabled: false } }), 'NetworkPolicy')).toEqual([]);
  });
});

describe('monitoring of the operator', () => {
  const kinds = ['Service', 'ServiceMonitor', 'PrometheusRule'];

  it('is off by default', () => {
    for (const kind of kinds) expect(ofKind(rendered(), kind)).toEqual([]);
    for (const kind of kinds) expect(ofKind(renderOperator(), kind)).toHaveLength(1);
  });

  it('reads the metrics of the operator’s pods, and of no other release', () => {
    const manifests = renderOperator();
    const { selector, endpoints } = pick(manifests, 'ServiceMonitor').spec;
    const service = pick(manifests, 'Service');
    const pod = pick(manifests, 'Deployment').spec.template;

    expect(service.metadata.labels).toMatchObject(selector.matchLabels);
    expect(pod.metadata.labels).toMatchObject(service.spec.selector);
    expect(selector.matchLabels['app.kubernetes.io/instance']).toBe('operator');
    expect(service.spec.ports[0].name).toBe(endpoints[0].port);
    const { ports } = pod.spec.containers[0];
    expect(ports.map(({ name }: Manifest) => name)).toContain(service.spec.ports[0].targetPort);
  });

  it('has a switch for its ServiceMonitor and for its rules', () => {
    const missing = (values: object) => {
      const manifests = renderOperator({ monitoring: { ...watched.monitoring, ...values } });
      return kinds.filter((kind) => ofKind(manifests, kind).length === 0);
    };
    expect(missing({ serviceMonitor: { enabled: false } })).toEqual(['ServiceMonitor']);
    expect(missing({ rules: { enabled: false } })).toEqual(['PrometheusRule']);
  });

  it('requires the URL of the runbooks', () => {
    expect(() => renderOperator({ monitoring: { enabled: true } })).toThrow(
      /monitoring\.rules\.runbookBaseUrl is empty: give the URL/,
    );
  });
});

describe('the Region that the chart of a release creates', () => {
  const create = {
    operator: { region: { create: true } },
    secrets: { operatorDatabaseUrl: { key: 'OPERATOR_DATABASE_URL' } },
  };

  it('is left out unless the values ask for it', () => {
    expect(ofKind(render(), 'Region')).toEqual([]);
  });

  it('names the release, the Secrets and the Temporal that the pods have', () => {
    const manifests = render({ values: { ...create, worker: { webhookAllow: ['10.0.0.0/8'] } } });
    const { metadata, spec } = pick(manifests, 'Region');
    const worker = pick(manifests, 'Deployment', '-worker').spec.template.spec.containers[0];
    const findSetting = (name: string) => worker.env.find((one: Manifest) => one.name === name)?.value;

    expect(metadata).toMatchObject({ name: 'region', namespace: 'org-api-us' });
    expect(spec).toEqual({
      region: 'us',
      release: { version: expect.stringMatching(/^\d+\.\d+\.\d+$/), digest: worker.image.split('@')[1] },
      allowPlaintext: findSetting('ALLOW_PLAINTEXT')
        .split(',')
        .filter((one: string) => one !== 'redis'),
      database: { secretRef: { name: 'org-api-us' } },
      temporal: {
        address: findSetting('TEMPORAL_ADDRESS'),
        namespace: findSetting('TEMPORAL_NAMESPACE'),
        tls: false,
      },
      webhooks: { secretKeysRef: { name: 'org-api-us' }, allow: ['10.0.0.0/8'] },
    });
    expect(worker.image).toContain(`@${spec.release.digest}`);
  });

  it('names the Secrets for TLS with Temporal', () => {
    const values = {
      ...create,
      temporal: { tls: { enabled: true, serverName: 'temporal.example.com' } },
      secrets: {
        ...create.secrets,
        temporalCa: { existingSecret: 'temporal', key: 'ca.crt' },
        temporalCertificate: { existingSecret: 'temporal', key: 'tls.crt' },
        temporalCertificateKey: { existingSecret: 'temporal', key: 'tls.key' },
        temporalApiKey: { key: 'TEMPORAL_API_KEY' },
      },
    };
    const { temporal } = pick(render({ values }), 'Region').spec;

    expect(temporal).toMatchObject({
      tls: true,
      tlsServerName: 'temporal.example.com',
      caSecretRef: { name: 'temporal' },
      certificateSecretRef: { name: 'temporal' },
      certificateKeySecretRef: { name: 'temporal' },
      apiKeySecretRef: { name: 'org-api-us' },
    });
  });

  it('has the other fields that the values give, but not those that the chart writes', () => {
    const region = { create: true, spec: { allowedOrganizations: ['*'], temporal: { namespace: 'other' } } };
    const { spec } = pick(render({ values: { ...create, operator: { region } } }), 'Region');

    expect(spec.allowedOrganizations).toEqual(['*']);
    expect(spec.temporal.namespace).toBe('org-api-us');
  });
});
