import type { Pool } from 'pg';
import { deliveriesPerStatement } from '#domain/webhooks/limits.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { type RepairedRow, repairDeliveriesSql } from './sql/repair.ts';
import { type ChangedDeliveriesRow, cancelDeletedSql, requeueHeldSql } from './sql/requests.ts';
import { type UnblockedRow, unblockSql } from './sql/unblock.ts';
import { repairEveryMs } from './times.ts';

/**
 * How many lost attempts may follow those of the schedule, since the event or the last redelivery.
 * The receiver may not have got the last one, but when the attempt itself kills its process, the
 * delivery must end.
 */
export const lostRepeats = 3;

/** Pages of blocked deliveries that are looked up a second while there are none to unblock: 40 ms of PostgreSQL. */
const idlePages = 10;

const nil = '00000000-0000-0000-0000-000000000000';
/** A webhook and an event before all others. */
const beforeAll = [nil, nil];

interface RepairOptions {
  pool: Pool;
  delaysMs: readonly number[];
  /** How late a run asks for its attempt before its delivery is queued for another one. */
  lateMs: number;
  /** Returns webhooks that were deleted and still have queued deliveries. */
  drainDeleted: () => string[];
  /** Called with what was repaired; at least one. */
  onRepaired: (repaired: RepairedRow[]) => void;
  /** Called when deliveries that waited for another of their subject were put into the queue. */
  onUnblocked: () => void;
  /** Deliveries of paused and suspended webhooks that were requeued, or of deleted ones that were cancelled. */
  onChanged: (how: 'requeued' | 'cancelled', deliveries: number) => void;
  onError: (cause: unknown) => void;
}

/** Goes round all blocked deliveries, some pages a second, and at once where a page had some to unblock. */
class BlockedDeliveries {
  readonly #pool: Pool;
  readonly #onUnblocked: () => void;
  #after = beforeAll;

  constructor(pool: Pool, onUnblocked: () => void) {
    this.#pool = pool;
    this.#onUnblocked = onUnblocked;
  }

  /** Returns whether there may be more to unblock. */
  async unblock(): Promise<boolean> {
    for (let pages = 0; pages < idlePages; pages += 1) {
      const query = { name: 'unblock', text: unblockSql, values: this.#after };
      const { rows } = await this.#pool.query<UnblockedRow>(query);
      const { unblocked, last } = rows[0] as UnblockedRow;
      this.#after = last ?? beforeAll;
      if (unblocked > 0) {
        this.#onUnblocked();
        return true;
      }
      if (last === null) return false;
    }
    return false;
  }
}

/**
 * Returns the loop that puts deliveries back whose process or workflow is gone, and requeues or
 * cancels those of webhooks that were paused, suspended or deleted. Every worker runs it; rows that
 * another one has locked are skipped. A part that fails does not stop the others, nor one that has
 * more to do than a second allows.
 */
export function createRepairLoop(options: RepairOptions): IntervalLoop {
  const { pool, delaysMs, lateMs, drainDeleted, onRepaired, onUnblocked, onChanged, onError } = options;
  const blocked = new BlockedDeliveries(pool, onUnblocked);
  const values = [delaysMs.length + 1 + lostRepeats, lateMs / 1_000, delaysMs];

  /** Returns whether there may be more, as `change`. */
  async function repair(): Promise<boolean> {
    const { rows } = await pool.query<RepairedRow>({ name: 'repair', text: repairDeliveriesSql, values });
    if (rows.length > 0) onRepaired(rows);
    return rows.length >= deliveriesPerStatement;
  }

  async function change(how: 'requeued' | 'cancelled', text: string, values: unknown[] = []): Promise<boolean> {
    const { rows } = await pool.query<ChangedDeliveriesRow>(text, values);
    for (const { deliveries } of rows) onChanged(how, deliveries);
    return rows.reduce((sum, { deliveries }) => sum + deliveries, 0) >= deliveriesPerStatement;
  }

  return new IntervalLoop({
    async run(signal) {
      const deleted = drainDeleted();
      const parts = [
        repair,
        () => blocked.unblock(),
        () => change('requeued', requeueHeldSql),
        () => change('cancelled', cancelDeletedSql, [deleted]),
      ];
      for (const part of parts) await repeat(part, signal).catch(onError);
    },
    everyMs: repairEveryMs,
    onError,
  });
}

/** Repeats a part while there may be more of it, for a second at most. */
async function repeat(part: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const until = performance.now() + repairEveryMs;
  while (!signal.aborted && performance.now() < until && (await part()));
}
