import { describe, expect, it } from 'vitest';
import { listPods, type Manifest, ofKind, pick, regions, render } from '#test/render-charts.ts';

describe.each(regions)('Services of %s', (region) => {
  const manifests = render({ region });

  it('reach pods of their own component, at existing ports', () => {
    for (const { metadata, spec } of ofKind(manifests, 'Service')) {
      const pods = listPods(manifests).filter(({ labels }) =>
        Object.entries(spec.selector).every(([key, value]) => labels[key] === value),
      );
      expect(pods, metadata.name).toHaveLength(1);
      const names = pods[0]?.spec.containers[0].ports.map((port: Manifest) => port.name);
      for (const { targetPort } of spec.ports) expect(names).toContain(targetPort);
    }
  });

  it('offer metrics at another port than the API', () => {
    const services = ofKind(manifests, 'Service').map(({ metadata, spec }) => [
      metadata.name,
      ...spec.ports.map((port: Manifest) => port.name),
    ]);
    expect(services.map((one) => one.join(' ')).sort()).toEqual(
      [
        'api http',
        'api-metrics metrics',
        'console http',
        'console-metrics metrics',
        'probe hooks',
        'worker-metrics metrics',
      ].map((one) => `${region}-org-api-${one}`),
    );
  });

  it('that callers reach have the families of the cluster, or those that the values say', () => {
    const listPolicies = (values: object) =>
      ofKind(render({ region, values }), 'Service')
        .filter(({ metadata }) => /-(api|console)$/.test(metadata.name))
        .map(({ spec }) => spec.ipFamilyPolicy);
    expect(listPolicies({})).toEqual(['PreferDualStack', 'PreferDualStack']);
    expect(listPolicies({ ipFamilyPolicy: 'RequireDualStack' })).toEqual(['RequireDualStack', 'RequireDualStack']);
  });

  it('of the probe keeps the address that its webhook was created with', () => {
    expect(pick(manifests, 'Service', '-probe').spec.clusterIP).toBe(region === 'us' ? '10.96.0.81' : '10.96.0.82');
  });
});

describe('routes', () => {
  const values = (own: object) => ({ api: own, console: own });
  const routed = {
    httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], annotations: { a: 'b' } },
    ingress: { enabled: false },
  };
  const ingress = {
    httpRoute: { enabled: false },
    ingress: { enabled: true, className: 'nginx', annotations: { a: 'b' }, tlsSecretName: '' },
  };

  it('of kind HTTPRoute match the host of the public URL and end at the Service', () => {
    const manifests = render({ values: values({ ...routed, service: { port: 8000 } }) });
    expect(ofKind(manifests, 'Ingress')).toEqual([]);
    for (const [component, host] of [
      ['api', 'api.us.example.com'],
      ['console', 'console.us.example.com'],
    ] as const) {
      const { metadata, spec } = pick(manifests, 'HTTPRoute', `-${component}`);
      expect(metadata.annotations).toEqual({ a: 'b' });
      expect(spec.hostnames).toEqual([host]);
      expect(spec.parentRefs).toEqual([{ name: 'public' }]);
      expect(spec.rules[0].backendRefs).toEqual([{ name: `us-org-api-${component}`, port: 8_000 }]);
      expect(pick(manifests, 'Service', `-${component}`).spec.ports[0].port).toBe(8_000);
    }
  });

  it('of kind Ingress match the host without its port, with TLS once there is a certificate', () => {
    const manifests = render({ values: { ...values(ingress), baseUrls: { us: 'https://api.us.example.com:8443' } } });
    expect(ofKind(manifests, 'HTTPRoute')).toEqual([]);
    const { metadata, spec } = pick(manifests, 'Ingress', '-api');
    expect(metadata.annotations).toEqual({ a: 'b' });
    expect(spec).toMatchObject({ ingressClassName: 'nginx', rules: [{ host: 'api.us.example.com' }] });
    expect(spec).not.toHaveProperty('tls');
    const tls = pick(render(), 'Ingress', '-console').spec.tls;
    expect(tls).toEqual([{ hosts: ['console.us.example.com'], secretName: 'console-us-tls' }]);
  });

  it('of kind HTTPRoute give a second release its share', () => {
    const second = { name: 'blue-org-api-api', port: 80, weight: 10 };
    const httpRoute = { ...routed.httpRoute, weight: 0, extraBackendRefs: [second] };
    for (const component of ['api', 'console'])
      expect(
        pick(render({ values: values({ ...routed, httpRoute }) }), 'HTTPRoute', `-${component}`).spec.rules[0]
          .backendRefs,
      ).toEqual([{ name: `us-org-api-${component}`, port: 80, weight: 0 }, second]);
  });

  it('are absent by default', () => {
    const manifests = render({ values: values({ httpRoute: { enabled: false }, ingress: { enabled: false } }) });
    expect([...ofKind(manifests, 'Ingress'), ...ofKind(manifests, 'HTTPRoute')]).toEqual([]);
  });

  it('can use a load balancer of the Service itself', () => {
    const balancer = { externalTrafficPolicy: 'Local', loadBalancerSourceRanges: ['192.0.2.0/24'] };
    const service = { type: 'LoadBalancer', annotations: { lb: 'internal' }, ...balancer };
    const { metadata, spec } = pick(render({ values: { api: { service } } }), 'Service', '-api');
    expect([spec.type, metadata.annotations]).toEqual(['LoadBalancer', { lb: 'internal' }]);
    expect(spec).toMatchObject(balancer);
    for (const one of Object.keys(balancer)) expect(pick(render(), 'Service', '-api').spec).not.toHaveProperty(one);
  });
});
