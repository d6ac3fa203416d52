import type { Pool } from 'pg';
import { type AuthorizedRow, authorizedValues, type ReadValues } from '#domain/db/statements/authorized.ts';
import { smallAnswerBytes } from './answer-body.ts';
import { isStatementError } from './database-error.ts';
import type { Endpoint } from './endpoints.ts';

type Statement = Endpoint['statement'];

/** The most reads of one statement, which bounds how long one of them waits for the others. */
const maxReads = 32;

/**
 * How many statements run before reads wait for one of them. A statement counts for at most
 * `busyMs`, so that a slow one delays no other: the pool's connections are then the bound.
 */
const maxBusy = 2;
const busyMs = 10;

/** A read that took this long (ms) in the database runs alone from then on, until it takes less. */
export const slowReadMs = 10;

interface Waiting {
  values: ReadValues;
  resolve: (row: AuthorizedRow | null) => void;
  reject: (cause: unknown) => void;
}

/**
 * Runs waiting reads of one operation as one statement.
 *
 * A read never waits for later ones: it waits while `maxBusy` statements run, and the next
 * statement takes all reads of its operation that have arrived. So each read's statement begins
 * after its request, and its decision and answer come from that statement's snapshot. When a
 * statement is refused or times out, each of its reads runs again alone, so that one changes no
 * other's answer. When a connection breaks, exactly the reads of its statement fail.
 *
 * Under load a read costs a third of what it costs with a separate statement: test/bench/reads.
 */
export function createReadBatches(options: {
  pool: Pool;
  /** Called with the number of reads of each statement. */
  onStatement?: (reads: number) => void;
}) {
  const { pool, onStatement = () => {} } = options;
  /** By statement, in the order of their turns. */
  const queues = new Map<Statement, Waiting[]>();
  let busy = 0;
  let isScheduled = false;

  async function run(statement: Statement, reads: readonly ReadValues[], room: number): Promise<AuthorizedRow[]> {
    onStatement(reads.length);
    const { rows } = await pool.query<AuthorizedRow>({ ...statement, values: authorizedValues(reads, room) });
    return rows;
  }

  async function runAlone(statement: Statement, values: ReadValues, room: number): Promise<AuthorizedRow | null> {
    const [row] = await run(statement, [values], room);
    return row ?? null;
  }

  async function runBatch(statement: Statement, batch: Waiting[]): Promise<void> {
    const reads = batch.map(({ values }) => values);
    try {
      const found = rowsByPlace(await run(statement, reads, smallAnswerBytes), batch.length);
      for (const [place, { resolve }] of batch.entries()) resolve(found[place] ?? null);
    } catch (cause) {
      const runsAgain = batch.length > 1 && isStatementError(cause);
      for (const { values, resolve, reject } of batch) {
        if (runsAgain) runAlone(statement, values, smallAnswerBytes).then(resolve, reject);
        else reject(cause);
      }
    }
  }

  /** Takes the next reads of the statement whose turn it is. */
  function takeBatch(): [Statement, Waiting[]] | null {
    const [next] = queues;
    if (next === undefined) return null;
    const [statement, waiting] = next;
    queues.delete(statement);
    if (waiting.length <= maxReads) return [statement, waiting];
    queues.set(statement, waiting.slice(maxReads));
    return [statement, waiting.slice(0, maxReads)];
  }

  function runWaiting(): void {
    isScheduled = false;
    while (busy < maxBusy) {
      const taken = takeBatch();
      if (taken === null) return;
      busy += 1;
      let isBusy = true;
      const end = () => {
        if (!isBusy) return;
        isBusy = false;
        busy -= 1;
        schedule();
      };
      const timer = setTimeout(end, busyMs);
      void runBatch(...taken).finally(() => {
        clearTimeout(timer);
        end();
      });
    }
  }

  /** Reads that become ready in one turn of the event loop share a statement. */
  function schedule(): void {
    if (isScheduled || busy >= maxBusy || queues.size === 0) return;
    isScheduled = true;
    process.nextTick(runWaiting);
  }

  return {
    /** Runs a read by itself; `room` is the largest size of its answer in bytes. */
    runAlone,

    /** Runs a read whose answer is small and fast, together with waiting ones. */
    runTogether(statement: Statement, values: ReadValues): Promise<AuthorizedRow | null> {
      return new Promise((resolve, reject) => {
        const waiting = queues.get(statement);
        if (waiting === undefined) queues.set(statement, [{ values, resolve, reject }]);
        else waiting.push({ values, resolve, reject });
        schedule();
      });
    },
  };
}

export type ReadBatches = ReturnType<typeof createReadBatches>;

/** Returns each read's row with its time in the database; null for an unknown key. */
function rowsByPlace(rows: AuthorizedRow[], reads: number): (AuthorizedRow | null)[] {
  const found = new Array<AuthorizedRow | null>(reads).fill(null);
  let beforeMs = 0;
  for (const row of rows) {
    const { elapsedMs } = row;
    found[row.place] = row;
    row.elapsedMs -= beforeMs;
    beforeMs = elapsedMs;
  }
  return found;
}
