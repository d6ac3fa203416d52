import { expect, onTestFinished, vi } from 'vitest';
import type { Database } from '#domain/db/database.ts';

const waiting = { timeout: 30_000, interval: 20 };

/**
 * Watches the statements of one process that wait for a lock. `name` is its `application_name`.
 */
export function watchStatements(owner: Database, name: string) {
  async function count(): Promise<number> {
    const { rows } = await owner.pool.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`,
      [name],
    );
    return rows[0]?.count ?? 0;
  }
  const until = (check: (count: number) => boolean) => vi.waitUntil(async () => check(await count()), waiting);

  return {
    until,

    /**
     * Waits until none waits, and checks that none was ended by its timeout: a statement that begins
     * later, with a shorter one, must still run.
     */
    async expectEnded(): Promise<void> {
      let isTimedOut = false;
      const witness = await owner.pool.connect();
      await witness.query('begin; set local statement_timeout = 4000');
      const timeout = witness.query('select pg_sleep(60)').catch(() => {
        isTimedOut = true;
      });
      await until((waits) => waits === 0);
      expect(isTimedOut).toBe(false);
      const { processID } = witness as unknown as { processID: number };
      await owner.pool.query('select pg_cancel_backend($1)', [processID]);
      await timeout;
      await witness.query('rollback');
      witness.release();
    },

    /** Locks tables, so that statements that read them do not end. Returns a function that unlocks. */
    async lock(tables: string): Promise<() => Promise<void>> {
      const client = await owner.pool.connect();
      await client.query('begin');
      await client.query(`lock table ${tables} in access exclusive mode`);
      let isHeld = true;
      const unlock = async () => {
        if (!isHeld) return;
        isHeld = false;
        await client.query('rollback');
        client.release();
      };
      onTestFinished(unlock);
      return unlock;
    },
  };
}
