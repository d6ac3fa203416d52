import type { Connection } from '@temporalio/client';
import { CompiledQuery } from 'kysely';
import type { Sealing } from '#domain/resealing/count.ts';
import type { DeliverySwitch } from '#domain/webhooks/delivery-switch.ts';
import { readDeliverySwitch } from '#domain/webhooks/delivery-switch.ts';
import { type Ledger, type ledgerFaults, readLedger } from '#domain/webhooks/ledger.ts';
import { findSignal } from '#runtime/flow/cancellation.ts';
import { type Failure, ReconcileError } from '../kube/custom-resource.ts';
import type { Reason } from '../kube/reasons.ts';
import type { Region } from '../kube/resources.ts';
import type { Connections } from './connections.ts';
import { readSealing } from './sealing-keys.ts';
import { type RegionState, readRegionStateSql } from './state.ts';
import { type ObservedNamespace, readNamespace } from './temporal-namespace.ts';

type LedgerFaults = Pick<Ledger, (typeof ledgerFaults)[number]>;

/** The observed state of a region. A part that could not be read has the reason instead. */
export interface ObservedRegion {
  database: (RegionState & { ledger: LedgerFaults; deliverySwitch: DeliverySwitch }) | Failure;
  /** Null: Temporal has no such namespace. */
  temporal: ObservedNamespace | Failure | null;
  /** What is sealed with which key. */
  sealing: Sealing | Failure;
}

export const isUnreadable = (part: object | null): part is Failure => part !== null && 'reason' in part;

/** For the requests to Temporal of one step. */
const temporalDeadlineMs = 5_000;

/** Reads PostgreSQL and Temporal independently. */
export async function observeRegion(region: Region, connections: Connections): Promise<ObservedRegion> {
  const { address } = region.spec.temporal;
  const [database, sealing, temporal] = await Promise.all([
    readPart('DatabaseUnreachable', 'PostgreSQL', () => readDatabase(region, connections)),
    readPart('DatabaseUnreachable', 'PostgreSQL', () => readSealing(region, connections)),
    readPart('TemporalUnreachable', `Temporal at ${address}`, () => readTemporal(region, connections)),
  ]);
  return { database, sealing, temporal };
}

async function readTemporal(region: Region, connections: Connections): Promise<ObservedNamespace | null> {
  const connection = await connections.openTemporal(region);
  return withinPass(connection, () => readNamespace(connection, region));
}

/** Makes requests to Temporal that end after `temporalDeadlineMs`, and with the pass. */
export function withinPass<T>(connection: Connection, ask: () => Promise<T>): Promise<T> {
  const signal = findSignal() ?? new AbortController().signal;
  return connection.withAbortSignal(signal, () => connection.withDeadline(Date.now() + temporalDeadlineMs, ask));
}

/** What PostgreSQL answers without migrations: no such table, column, function, schema or right. */
const notMigrated: readonly unknown[] = ['42P01', '42703', '42883', '3F000', '42501'];

async function readPart<T>(reason: Reason, server: string, read: () => Promise<T>): Promise<T | Failure> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof ReconcileError) return { reason: cause.reason, message: cause.message };
    const { code } = cause as { code?: string | number };
    if (notMigrated.includes(code))
      return { reason: 'NotMigrated', message: 'The database lacks the schema or the rights of this version.' };
    const named = typeof code === 'number' ? `code ${code} of gRPC` : code;
    return { reason, message: `${server} did not answer${named === undefined ? '' : ` (${named})`}.` };
  }
}

async function readDatabase(region: Region, connections: Connections) {
  const database = await connections.openDatabase(region);
  const [row] = await database.query<{ state: RegionState }>(CompiledQuery.raw(readRegionStateSql));
  if (row === undefined) throw new Error('the region state answered no row');
  const ledger = await readLedger(database);
  const deliverySwitch = await readDeliverySwitch(database);
  return { ...row.state, ledger, deliverySwitch };
}
