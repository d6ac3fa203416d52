import { readLedgerSql, rollUpLedgerSql } from '#domain/webhooks/ledger-statements.ts';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { deliver, type Statement } from './deliver.ts';
import { visit } from './measure.ts';
import { pages } from './pages.ts';
import type { GrownRegion } from './region.ts';

/** The limit of a task when its tables grow. */
export interface Budget {
  /** Ratio to the time in the smallest region. */
  ratio?: number;
  /** An absolute bound, for tasks that may grow. */
  ms?: number;
}

/** A task that is measured in every region. Each run returns its milliseconds by name. */
export interface Task {
  names: readonly string[];
  budget: Budget;
  run(region: GrownRegion): Promise<Record<string, number>>;
}

const timed = (name: string, budget: Budget, work: (region: GrownRegion) => Promise<unknown>): Task => ({
  names: [name],
  budget,
  async run(region) {
    const startedAt = performance.now();
    await work(region);
    return { [name]: performance.now() - startedAt };
  },
});

const purgedAtOnce = 20;
const keptDays = 90;

const reads = endpoints.map(({ operationId, resource }) =>
  timed(operationId, { ratio: 1.2 }, async ({ apiUrl, nextKey }) => {
    const { key, organizationId } = nextKey();
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${apiUrl}/v1/orgs/${organizationId}${resource}`, { headers });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${operationId} was answered ${response.status}`);
  }),
);

/** One delivery from the relay's poll to its recorded outcome. */
const delivery: Task = {
  names: ['find', 'claim', 'admit', 'outcome'],
  budget: { ratio: 1.2 },
  async run({ worker }) {
    const times: Record<string, number> = {};
    const onTimed = (of: Statement, ms: number) => {
      times[of] = ms;
    };
    if ((await deliver(worker, 1, { onTimed })) !== 1) throw new Error('nothing was claimed');
    return times;
  },
};

const consolePages = pages.map(({ name, path }) =>
  timed(name, { ratio: 1.5, ms: 100 }, async ({ consoleUrl, organization, cookie }) => {
    const url = `${consoleUrl}/o/${organization.id}${path(organization)}`;
    const { status } = await visit(url, cookie, { firstByteOnly: name.startsWith('CSV') });
    if (status !== 200) throw new Error(`${name} was answered ${status}`);
  }),
);

/** Every measured task, in the order in which they are printed. */
export const tasks: readonly { title: string; tasks: readonly Task[] }[] = [
  { title: 'Reads', tasks: reads },
  { title: 'A delivery', tasks: [delivery] },
  {
    title: 'The ledger and retention',
    tasks: [
      timed('read the ledger', { ratio: 1.5, ms: 100 }, ({ worker }) => worker.query(readLedgerSql)),
      timed('roll up the ledger', { ratio: 1.5, ms: 100 }, ({ worker }) => worker.query(rollUpLedgerSql, [60, 20_000])),
      timed(`purge ${purgedAtOnce} deliveries`, { ratio: 1.5, ms: 100 }, ({ worker }) =>
        worker.query(purgeDeliveriesSql, [keptDays, purgedAtOnce]),
      ),
    ],
  },
  { title: 'Pages of the console, and searches in them', tasks: consolePages },
];

/**
 * Whether a task of `ms` is within its budget, with `smallestMs` in the smallest region. With both
 * a ratio and an absolute bound, one of them is enough.
 */
export const keepsBudget = ({ ratio = 0, ms: most = 0 }: Budget, ms: number, smallestMs: number): boolean =>
  ms / smallestMs <= ratio || ms <= most;
