import type { Connection } from '@temporalio/client';
import type { Pool } from 'pg';
import type { DeliveryAdmission } from '#domain/db/statements/delivery-admission.ts';
import { type RegionState, readRegionStateSql } from '#domain/db/statements/region-state.ts';
import type { Sealing } from '#domain/sealed/count.ts';
import { readDeliveryAdmission } from '#domain/webhooks/delivery-admission.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { type Failure, ReconcileFailed } from '../controller/contract.ts';
import type { Reason } from '../controller/reasons.ts';
import type { Region } from '../resources.ts';
import type { Connections } from './connections.ts';
import { readSealing } from './sealing-keys.ts';

/** A build of the workers, as Temporal knows it. */
export interface WorkerBuild {
  buildId: string;
  state: 'Current' | 'Ramping' | 'Draining' | 'Drained' | 'Inactive';
}

export interface Workers {
  currentBuild: string | null;
  ramping: { buildId: string; percent: number } | null;
  /** Newest first. */
  builds: WorkerBuild[];
}

/** Something that could not be read, and why. */
export type Unreadable = Failure;

/** What was found of a region. A part that could not be read says why; the others are still shown. */
export interface ObservedRegion {
  database: (RegionState & { ledgerDifference: number; admission: DeliveryAdmission }) | Unreadable;
  /** Null: the spec names no deployment, or Temporal knows none of that name. */
  workers: Workers | Unreadable | null;
  /** What is sealed with which key. */
  sealing: Sealing | Unreadable;
}

export const isUnreadable = (part: object | null): part is Unreadable => part !== null && 'reason' in part;

const temporalDeadlineMs = 5_000;

/** Reads the region's PostgreSQL and Temporal, each by itself. */
export async function observeRegion(region: Region, connections: Connections): Promise<ObservedRegion> {
  const [database, sealing, workers] = await Promise.all([
    readPart('DatabaseUnreachable', 'PostgreSQL', async () => {
      const { pool } = await connections.openDatabase(region);
      return readMigrated(() => readDatabase(pool));
    }),
    readPart('DatabaseUnreachable', 'PostgreSQL', () => readMigrated(() => readSealing(region, connections))),
    readPart('TemporalUnreachable', 'Temporal', async () => {
      return readWorkers(await connections.openTemporal(region), region);
    }),
  ]);
  return { database, sealing, workers };
}

async function readPart<T>(reason: Reason, server: string, read: () => Promise<T>): Promise<T | Unreadable> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof ReconcileFailed) return { reason: cause.reason, message: cause.message };
    const { code } = cause as { code?: string | number };
    return { reason, message: `${server} did not answer${code === undefined ? '' : ` (${code})`}.` };
  }
}

/** What PostgreSQL answers before the first migration: no such table, function, schema or right. */
const notMigrated = new Set(['42P01', '42883', '3F000', '42501']);

async function readDatabase(pool: Pool): Promise<ObservedRegion['database']> {
  const { rows } = await pool.query<{ state: RegionState }>(readRegionStateSql);
  if (rows[0] === undefined) throw new Error('the region state answered no row');
  const { difference } = await readLedger(pool);
  const admission = await readDeliveryAdmission(pool);
  return { ...rows[0].state, ledgerDifference: difference, admission };
}

async function readMigrated<T>(read: () => Promise<T>): Promise<T | Unreadable> {
  try {
    return await read();
  } catch (cause) {
    if (!notMigrated.has((cause as { code?: string }).code ?? '')) throw cause;
    return { reason: 'NotMigrated', message: 'The database lacks the schema or the rights of this version.' };
  }
}

const states: Record<number, WorkerBuild['state']> = {
  1: 'Inactive',
  2: 'Current',
  3: 'Ramping',
  4: 'Draining',
  5: 'Drained',
};
const grpcNotFound = 5;

async function readWorkers(connection: Connection, { spec }: Region): Promise<Workers | null> {
  const { namespace, deployment } = spec.temporal;
  const call = <T>(work: () => Promise<T>) => connection.withDeadline(Date.now() + temporalDeadlineMs, work);
  await call(() => connection.workflowService.describeNamespace({ namespace }));
  if (deployment === undefined) return null;
  const described = await call(() =>
    connection.workflowService.describeWorkerDeployment({ namespace, deploymentName: deployment }),
  ).catch((cause: { code?: number }) => {
    if (cause.code === grpcNotFound) return null;
    throw cause;
  });
  if (described === null) return null;
  const { routingConfig, versionSummaries } = described.workerDeploymentInfo ?? {};
  const ramping = routingConfig?.rampingDeploymentVersion?.buildId;
  const builds = (versionSummaries ?? [])
    .toSorted((a, b) => Number(b.createTime?.seconds ?? 0) - Number(a.createTime?.seconds ?? 0))
    .map(({ deploymentVersion, status }) => ({
      buildId: deploymentVersion?.buildId ?? '',
      state: states[status ?? 0] ?? 'Inactive',
    }));
  return {
    currentBuild: routingConfig?.currentDeploymentVersion?.buildId || null,
    ramping: ramping ? { buildId: ramping, percent: routingConfig?.rampingVersionPercentage ?? 0 } : null,
    builds: builds.slice(0, 20),
  };
}
