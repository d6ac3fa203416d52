import { CustomObjectsApi } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { createNamespace } from '#test/api-server.ts';
import { pick, render } from '#test/render-charts.ts';
import { group, kinds } from '../../apps/operator/kube/resources.ts';
import { regionIn } from './region.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

/** Returns the API server's error for an object; null when it accepts it. */
const findRejection = (object: object): Promise<string | null> =>
  server()
    .apply(object)
    .then(
      () => null,
      (error: { body?: string }) => (JSON.parse(String(error.body)) as { message: string }).message,
    );

it('no reference to a Secret has a key of its own: neither a Region’s nor a WebhookSubscription’s', async () => {
  const namespace = await createNamespace(server());
  const ref = { name: 'org-api', key: 'DATABASE_URL' };
  const region = regionIn(namespace, {
    database: { secretRef: ref },
    temporal: {
      address: 'temporal:7233',
      namespace: 'us',
      caSecretRef: ref,
      certificateSecretRef: ref,
      certificateKeySecretRef: ref,
      apiKeySecretRef: ref,
    },
    webhooks: { secretKeysRef: ref },
    sealing: { resealWith: 1, databaseSecretRef: ref },
  });
  const subscription = {
    apiVersion: `${group}/${kinds.WebhookSubscription.version}`,
    kind: 'WebhookSubscription',
    metadata: { name: 'orders', namespace },
    spec: {
      organizationId: '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d',
      url: 'https://hooks.example.com/',
      eventTypes: ['client.started'],
      headersSecretRef: ref,
      secret: { secretRef: ref },
    },
  };
  const custom = server().kubeConfig.makeApiClient(CustomObjectsApi);
  for (const body of [region, subscription]) {
    const { version, plural } = kinds[body.kind as keyof typeof kinds];
    const stored = await custom.createNamespacedCustomObject({ group, version, plural, namespace, body });
    const given = JSON.stringify(body.spec).split('DATABASE_URL').length - 1;
    expect(JSON.stringify(stored.spec).split('"org-api"').length - 1).toBe(given);
    expect(JSON.stringify(stored.spec)).not.toContain('"key"');
    expect(await findRejection(body)).toContain('field not declared in schema');
  }
});

describe('a Region', () => {
  it('is accepted with the defaults of its schema', async () => {
    const namespace = await createNamespace(server());

    expect(await findRejection(regionIn(namespace))).toBeNull();

    const api = server().kubeConfig.makeApiClient(CustomObjectsApi);
    const { group, version, plural } = kinds.Region;
    const read = await api.getNamespacedCustomObject({ group, version, plural, namespace, name: 'region' });
    expect(read.spec.temporal.tls).toBe(true);
  });

  it('is accepted as the chart of a release writes it', async () => {
    const namespace = await createNamespace(server());
    const secrets = { operatorDatabaseUrl: { key: 'OPERATOR_DATABASE_URL' }, temporalCa: { key: 'ca.crt' } };
    const region = { create: true, spec: { allowedOrganizations: ['*'] } };
    const temporal = { address: '[2001:db8::1]:7233', tls: { enabled: true } };
    const values = { operator: { region }, secrets, temporal };

    expect(await findRejection(pick(render({ namespace, values }), 'Region'))).toBeNull();
  });

  it('is the only one of its namespace, because its name is fixed', async () => {
    const namespace = await createNamespace(server());
    const region = regionIn(namespace);

    expect(await findRejection({ ...region, metadata: { name: 'other', namespace } })).toContain(
      'a namespace has one Region, and its name is region',
    );
  });

  it('cannot change its region, and can change the namespace of Temporal, as a lost one needs it', async () => {
    const namespace = await createNamespace(server());
    await server().apply(regionIn(namespace));

    expect(await findRejection(regionIn(namespace, { region: 'ca' }))).toContain('region cannot change');
    await server().apply(regionIn(namespace, { temporal: { address: 'temporal:7233', namespace: 'other' } }));
  });

  it.each([
    ['a region that is not served', { region: 'eu' }, 'spec.region'],
    ['a digest that is none', { release: { version: '1', digest: 'latest' } }, 'spec.release.digest'],
    [
      'an IPv6 address without brackets',
      { temporal: { address: '::1:7233', namespace: 'us' } },
      'spec.temporal.address',
    ],
    ['an address without a port', { temporal: { address: 'temporal', namespace: 'us' } }, 'spec.temporal.address'],
    [
      'a Temporal API key without TLS',
      {
        temporal: {
          address: 'temporal:7233',
          namespace: 'us',
          tls: false,
          apiKeySecretRef: { name: 'temporal' },
        },
      },
      'need tls',
    ],
    [
      'half of mutual TLS',
      { temporal: { address: 'temporal:7233', namespace: 'us', certificateSecretRef: { name: 't' } } },
      'mutual TLS needs both',
    ],
    [
      'a retention of less than a day',
      { temporal: { address: 'temporal:7233', namespace: 'us', retention: '12h' } },
      'retention is 24h at least',
    ],
    ['an organization that is no id', { allowedOrganizations: ['acme'] }, 'spec.allowedOrganizations[0]'],
  ])('is rejected with %s', async (_, spec, message) => {
    const namespace = await createNamespace(server());

    expect(await findRejection(regionIn(namespace, spec))).toContain(message);
  });
});
