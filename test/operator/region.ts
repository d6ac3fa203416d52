import { kinds, type Region, type RegionSpec } from '../../apps/operator/resources.ts';

const { group, version } = kinds.Region;

/** Returns a Region as a controller reads it, with the fields of `spec` replaced. */
export const regionWith = (spec: Partial<RegionSpec> = {}): Region => ({
  apiVersion: `${group}/${version}`,
  kind: 'Region',
  metadata: {
    name: 'region',
    namespace: 'test',
    uid: '1',
    generation: 1,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {
    region: 'us',
    release: { version: '0.1.0', buildId: 'b2' },
    database: { secretRef: { name: 'org-api', key: 'OPERATOR_DATABASE_URL' } },
    temporal: {
      address: 'temporal:7233',
      namespace: 'us',
      deployment: 'org-api-us',
      tls: false,
      searchAttributes: 'Unmanaged',
    },
    ...spec,
  },
});
