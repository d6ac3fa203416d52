import { describe, expect, it } from 'vitest';
import { refusalOf } from './render.ts';

/** What is wrong, on top of us-values.yaml → what Helm says. */
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
    /api\.replicas is set beside api\.autoscaling\.enabled: .*remove api\.replicas or switch the autoscaler off/,
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
  [
    'peers unknown to the network policy',
    { networkPolicy: { database: { to: [] } } },
    /networkPolicy\.database\.to is empty: name the peers/,
  ],
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
  ['a probe without an address', { probe: { clusterIP: '' } }, /probe\.clusterIP is empty: choose a free address/],
];

describe('the chart refuses', () => {
  it.each(misuses)('%s, in a sentence', (_, values, sentence) => {
    expect(refusalOf(values)).toMatch(sentence);
  });

  it('everything at once that is missing, so that nobody installs it ten times', () => {
    const told = refusalOf({ region: 'us' }, null);
    expect(told.match(/^- /gm)).toHaveLength(15);
  });

  it('nothing of what an operator may well want', () => {
    expect(refusalOf({})).toBe('');
    expect(refusalOf({ networkPolicy: { enabled: false, database: { to: [] } } })).toBe('');
    expect(refusalOf({ console: { enabled: false, url: '' }, global: { any: 1 } })).toBe('');
    expect(refusalOf({ api: { autoscaling: { enabled: false }, replicas: 5 } })).toBe('');
    expect(refusalOf({ migrations: { enabled: false }, secrets: { ownerDatabaseUrl: { key: '' } } })).toBe('');
  });
});
