import { describe, expect, it } from 'vitest';
import { addressBlocks } from '#runtime/settings/types.ts';
import { findRenderError } from '#test/render-charts.ts';

/** Invalid values, on top of us-values.yaml → Helm's message. */
const misuses: [string, object, RegExp][] = [
  ['no image', { image: { repository: '' } }, /image\.repository is empty: name the image/],
  ['a digest that is none', { image: { digest: 'latest' } }, /\/image\/digest/],
  ['a region that is none', { region: 'eu' }, /\/region': value must be one of 'us', 'ca'/],
  ['only one region’s URL', { baseUrls: { ca: '' } }, /baseUrls\.ca is empty: .*public URLs of both regions/],
  ['a URL with a path', { baseUrls: { us: 'https://a.example.com/v1' } }, /\/baseUrls\/us/],
  [
    'no Secret',
    { secrets: { existingSecret: '' } },
    /no Secret holds WEBHOOK_SECRET_KEYS, which worker needs: name one in secrets\.existingSecret/,
  ],
  ['a Secret without a key', { secrets: { redisUrl: { key: '' } } }, /key of the Secret that holds REDIS_URL is empty/],
  ['a secret as a value', { secrets: { keyPeppers: { value: '1:x' } } }, /additional properties 'value' not allowed/],
  [
    'a number of pods beside an autoscaler',
    { api: { replicas: 3 } },
    /api\.replicas is set beside api\.autoscaling\.enabled: .*remove api\.replicas or disable the autoscaler/,
  ],
  [
    'an autoscaler upside down',
    { api: { autoscaling: { minReplicas: 9 } } },
    /api\.autoscaling\.minReplicas is above maxReplicas/,
  ],
  ['an unknown value', { api: { replicaCount: 3 } }, /additional properties 'replicaCount' not allowed/],
  ['an unknown section', { workers: {} }, /additional properties 'workers' not allowed/],
  [
    'a worker that has no time to stop',
    { worker: { terminationGracePeriodSeconds: 10 } },
    /terminationGracePeriodSeconds/,
  ],
  [
    'no Temporal',
    { temporal: { address: '', namespace: '' } },
    /temporal\.address is empty[\s\S]*temporal\.namespace is empty/,
  ],
  ['an IPv6 address without brackets', { temporal: { address: '::1:7233' } }, /\/temporal\/address/],
  ['an OTLP endpoint of the same kind', { otlp: { endpoint: 'http://::1:4318' } }, /\/otlp\/endpoint/],
  [
    'an API key for a Temporal in plain text',
    { secrets: { temporalApiKey: { key: 'TEMPORAL_API_KEY' } } },
    /secrets\.temporalApiKey\.key is set without temporal\.tls\.enabled: .*plain text/,
  ],
  [
    'a name of Temporal’s certificate without TLS',
    { temporal: { tls: { serverName: 'temporal.example.com' } } },
    /temporal\.tls\.serverName is set without temporal\.tls\.enabled/,
  ],
  [
    'half of mutual TLS',
    { temporal: { tls: { enabled: true } }, secrets: { temporalCertificate: { key: 'tls.crt' } } },
    /secrets\.temporalCertificateKey\.key is empty beside secrets\.temporalCertificate\.key/,
  ],
  [
    'a Region without a login for the operator',
    { operator: { region: { create: true } } },
    /secrets\.operatorDatabaseUrl\.key is empty beside operator\.region\.create/,
  ],
  [
    'other keys of Secrets than the operator reads',
    {
      operator: { region: { create: true } },
      secrets: {
        operatorDatabaseUrl: { key: 'DATABASE_URL' },
        webhookSecretKeys: { key: 'KEYS' },
        temporalCa: { key: 'CA' },
        temporalCertificate: { key: 'CERTIFICATE' },
        temporalCertificateKey: { key: 'PRIVATE' },
        temporalApiKey: { key: 'apiKey' },
      },
      temporal: { tls: { enabled: true } },
    },
    new RegExp(
      [
        ['operatorDatabaseUrl', 'DATABASE_URL', 'OPERATOR_DATABASE_URL'],
        ['temporalApiKey', 'apiKey', 'TEMPORAL_API_KEY'],
        ['temporalCa', 'CA', 'ca\\.crt'],
        ['temporalCertificate', 'CERTIFICATE', 'tls\\.crt'],
        ['temporalCertificateKey', 'PRIVATE', 'tls\\.key'],
        ['webhookSecretKeys', 'KEYS', 'WEBHOOK_SECRET_KEYS'],
      ]
        .map(([name, given, key]) => `secrets\\.${name}\\.key is ${given} beside [\\s\\S]*under ${key}`)
        .join('[\\s\\S]*'),
    ),
  ],
  [
    'peers unknown to the network policy',
    { networkPolicy: { database: { to: [] } } },
    /networkPolicy\.database\.to is empty: name the peers/,
  ],
  [
    'no one who may call the API',
    { networkPolicy: { http: { from: [] } } },
    /networkPolicy\.http\.from is empty: name/,
  ],
  ...(
    [
      ['fd00::/8', '2000::/3'], // private, as the pods of a cluster
      ['::/0', '2000::/3'],
      ['2000::/3', '2000::/3'],
      ['0.0.0.0/0', '0.0.0.0/0'],
    ] as const
  ).map(([block, of]): [string, object, RegExp] => [
    `an exception for webhooks that is no part of what they reach: ${block}`,
    { networkPolicy: { webhooks: { except: [block] } } },
    new RegExp(`networkPolicy\\.webhooks\\.except has ${block}, which is no smaller block of ${of}: .*remove it`),
  ]),
  ['traces without a collector’s peers', { networkPolicy: { otlp: { to: [] } } }, /networkPolicy\.otlp\.to is empty/],
  [
    'a route without a gateway',
    { api: { httpRoute: { parentRefs: [] } } },
    /api\.httpRoute\.parentRefs is empty: name the Gateway/,
  ],
  ['a console without its URL', { console: { url: '' } }, /console\.url is empty: give the address/],
  [
    'a setting given twice',
    { worker: { extraEnv: [{ name: 'TEMPORAL_NAMESPACE', value: 'x' }] } },
    /worker\.extraEnv sets TEMPORAL_NAMESPACE, which the chart sets itself/,
  ],
  [
    'a secret given twice',
    { migrations: { extraEnv: [{ name: 'DATABASE_URL', value: 'x' }] } },
    /migrations\.extraEnv sets DATABASE_URL/,
  ],
  [
    'another port than probes and Services have',
    { api: { extraEnv: [{ name: 'PORT', value: '9000' }] } },
    /api\.extraEnv sets PORT, which ports and probes of the pod and its Services rely on/,
  ],
  [
    'an HTTPRoute of the API behind which every caller would have the gateway’s address',
    { api: { trustedProxies: [] } },
    /trustedProxies is empty beside httpRoute\.enabled: .* share the gateway's address, .*; give the addresses/,
  ],
  [
    'an Ingress of the API of the same kind',
    { api: { trustedProxies: [], httpRoute: { enabled: false }, ingress: { enabled: true } } },
    /api\.trustedProxies is empty beside ingress\.enabled: /,
  ],
  [
    'an Ingress of the console of the same kind',
    { console: { trustedProxies: [] } },
    /console\.trustedProxies is empty beside ingress\.enabled: /,
  ],
  [
    'an HTTPRoute of the console of the same kind',
    {
      console: {
        trustedProxies: [],
        ingress: { enabled: false },
        httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] },
      },
    },
    /console\.trustedProxies is empty beside httpRoute\.enabled: /,
  ],
  ['proxies by name', { api: { trustedProxies: ['gateway.example'] } }, /\/api\/trustedProxies\/0/],
  ['addresses that are none', { worker: { webhookAllow: ['10.0.0.0/33'] } }, /\/worker\/webhookAllow\/0/],
  [
    'a disruption budget that stops every drain',
    { api: { podDisruptionBudget: { maxUnavailable: 0 } } },
    /maxUnavailable/,
  ],
  ['the same as a percentage', { api: { podDisruptionBudget: { maxUnavailable: '0%' } } }, /maxUnavailable/],
  ['no section', { api: null }, /missing property 'api'/],
  ['no value', { temporal: { namespace: null } }, /\/temporal': missing property 'namespace'/],
  ['a number as a name', { nameOverride: 1234 }, /\/nameOverride': got number, want string/],
  [
    'an egress proxy, which only some connections would use',
    { worker: { extraEnv: [{ name: 'https_proxy', value: 'http://proxy:3128' }] } },
    /worker\.extraEnv sets https_proxy, but org-api connects .* directly, without a proxy: remove it/,
  ],
  ['a schedule without units', { worker: { deliverySchedule: '5,30' } }, /\/worker\/deliverySchedule/],
  ['a repair that is never late', { worker: { requeueAfter: '100ms' } }, /\/worker\/requeueAfter/],
  ['a block without its length', { networkPolicy: { webhooks: { except: ['52.0.0.0'] } } }, /\/webhooks\/except\/0/],
  ['a probe at a name', { probe: { clusterIP: 'None' } }, /\/probe\/clusterIP/],
  [
    'an account that no one named',
    { worker: { serviceAccount: { create: false } } },
    /worker\.serviceAccount\.name is empty beside worker\.serviceAccount\.create false: name the account/,
  ],
  [
    'a rollout that cannot begin',
    { api: { strategy: { maxSurge: '0%' } } },
    /api\.strategy allows neither a pod more nor a pod less: raise maxSurge/,
  ],
  [
    'a policy for traffic that never comes',
    { api: { service: { externalTrafficPolicy: 'Local' } } },
    /api\.service\.externalTrafficPolicy is set for a ClusterIP/,
  ],
  [
    'source ranges without a LoadBalancer',
    { api: { service: { type: 'NodePort', loadBalancerSourceRanges: ['192.0.2.0/24'] } } },
    /api\.service\.loadBalancerSourceRanges is set without a LoadBalancer and would have no effect/,
  ],
  [
    'a second backend without a share for the first',
    { api: { httpRoute: { extraBackendRefs: [{ name: 'blue-org-api-api', port: 80, weight: 1 }] } } },
    /api\.httpRoute\.weight is null beside extraBackendRefs/,
  ],
  ['a probe without an address', { probe: { clusterIP: '' } }, /probe\.clusterIP is empty: choose a free address/],
];

describe('the chart rejects', () => {
  it('addresses that the apps reject at their start, so that no pod is created that cannot start', () => {
    const none = [
      '10.0.0.0/',
      '10.0.0.0/a',
      '10.0.0',
      '10.0.0.0/8/8',
      '::1/129',
      'proxy.example',
      '1.2.3.256',
      '1.2.3.04',
    ];
    for (const text of none) {
      expect(addressBlocks.safeParse(text).success, text).toBe(false);
      const message = findRenderError({ api: { trustedProxies: [text] }, worker: { webhookAllow: [text] } });
      for (const value of ['/api/trustedProxies/0', '/worker/webhookAllow/0']) expect(message, text).toContain(value);
    }
  });

  it.each(misuses)('%s, in one sentence', (_, values, sentence) => {
    expect(findRenderError(values)).toMatch(sentence);
  });

  it('everything that is missing at once', () => {
    const message = findRenderError({ region: 'us' }, null);
    expect(message.match(/^- /gm)).toHaveLength(17);
  });

  it('no reasonable value', () => {
    expect(findRenderError({})).toBe('');
    expect(findRenderError({ networkPolicy: { enabled: false, database: { to: [] } } })).toBe('');
    expect(findRenderError({ console: { enabled: false, url: '' }, global: { any: 1 } })).toBe('');
    expect(findRenderError({ api: { autoscaling: { enabled: false }, replicas: 5 } })).toBe('');
    expect(findRenderError({ worker: { deliverySchedule: '5s, 30s,1h', requeueAfter: '1500ms' } })).toBe('');
    const blocks = ['10.0.0.0/8', '192.0.2.7', '::1', 'fd00::/64', '::ffff:10.0.0.1', '2001:db8:1:2:3:4:5:6/128'];
    expect(findRenderError({ api: { trustedProxies: blocks }, worker: { webhookAllow: blocks } })).toBe('');
    for (const address of ['[::1]:7233', '[2001:db8::1]:7233', '10.0.0.1:7233'])
      expect(findRenderError({ temporal: { address }, otlp: { endpoint: `https://${address}/otlp` } }), address).toBe(
        '',
      );
    const direct = { trustedProxies: [], httpRoute: { enabled: false }, ingress: { enabled: false } };
    expect(findRenderError({ api: direct, console: direct })).toBe('');
    expect(findRenderError({ console: { enabled: false, trustedProxies: [] } })).toBe('');
    expect(findRenderError({ migrations: { enabled: false }, secrets: { ownerDatabaseUrl: { key: '' } } })).toBe('');
  });
});
