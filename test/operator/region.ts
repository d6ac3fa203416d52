import { currentMigration } from '#domain/db/schema-version.ts';
import { kinds, type Region, type RegionSpec } from '../../apps/operator/kube/resources.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';

const { group, version } = kinds.Region;

/** A database with the current schema and without pending work. */
export const quietDatabase = {
  migrations: [currentMigration],
  failedMigration: null,
  waiting: 0,
  overdue: 0,
  oldestDueAt: null,
  suspendedWebhooks: 0,
  peppers: [],
  ledger: { difference: 0, missing: 0, surplus: 0, unexplained: 0 },
  deliverySwitch: { state: 'running', changedAt: '2026-01-01T00:00:00.000Z', underWay: 0, isDrained: false },
} as const satisfies ObservedRegion['database'];

/** A region of that database, without pending work. */
export const quietRegion = {
  database: quietDatabase,
  temporal: { retentionSeconds: 86_400 },
  sealing: { newest: 1, counts: [], unused: [], missing: [] },
} satisfies ObservedRegion;

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
    release: { version: '0.1.0' },
    database: { secretRef: { name: 'org-api' } },
    temporal: {
      address: 'temporal:7233',
      namespace: 'us',
      tls: false,
    },
    ...spec,
  },
});

/** Returns a valid Region. */
export function regionIn(namespace: string, spec: Record<string, unknown> = {}) {
  return {
    apiVersion: `${group}/${version}`,
    kind: 'Region',
    metadata: { name: 'region', namespace },
    spec: {
      region: 'us',
      release: { version: '0.1.0' },
      database: { secretRef: { name: 'org-api' } },
      temporal: { address: 'temporal:7233', namespace: 'org-api-us' },
      ...spec,
    },
  };
}
