import { currentMigration } from '#domain/db/migrations/index.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';
import { kinds, type Region, type RegionSpec } from '../../apps/operator/resources.ts';

const { group, version } = kinds.Region;

/** A database whose schema is current and in which nothing waits. */
export const quietDatabase = {
  migrations: [currentMigration],
  pendingContract: [] as string[],
  failedMigration: null,
  waiting: 0,
  overdue: 0,
  oldestDueAt: null,
  suspendedWebhooks: 0,
  peppers: [],
  ledgerDifference: 0,
  admission: { state: 'running', changedAt: '2026-01-01T00:00:00.000Z', underWay: 0, isDrained: false },
} as const satisfies ObservedRegion['database'];

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
