import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { asOwner, type BenchServers } from '../servers.ts';
import type { GrownRegion } from './region.ts';
import { type Task, tasks } from './tasks.ts';

/** The tables that grow. The number of rows read from other tables depends on their own size. */
const grown = new Set(['audit_entry', 'event', 'delivery', 'delivery_attempt']);
/** The absolute part of the bound on rows. */
const worthNaming = 5_000;

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** Lets every later connection log its plans. Must be called before the first region is created. */
export const preparePlans = ({ postgres }: BenchServers): Promise<void> =>
  setServer(postgres.adminUrl, {
    session_preload_libraries: `'auto_explain'`,
    'auto_explain.log_format': `'json'`,
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
  });

async function setServer(adminUrl: string, settings: Record<string, string>): Promise<void> {
  await asOwner(adminUrl, async (admin) => {
    for (const [name, value] of Object.entries(settings)) await admin.query(`alter system set ${name} = ${value}`);
    await admin.query('select pg_reload_conf()');
  });
  await wait(500); // every connection rereads its settings when it is idle
}

/**
 * Runs every task once in each region while PostgreSQL logs the plan of each statement, including
 * nested ones. Prints how many rows their scans read in the two largest regions. Returns a sentence
 * for each scan of a growing table that reads more rows in the largest.
 */
export async function comparePlans(
  servers: BenchServers,
  regions: readonly GrownRegion[],
  say: (line: string) => void,
): Promise<string[]> {
  await setServer(servers.postgres.adminUrl, { 'auto_explain.log_min_duration': '0' });
  const log = path.join(servers.folder, 'postgres.log');
  say(`\n${'Rows read, in the two largest regions'.padEnd(46)}`);
  const problems: string[] = [];
  for (const task of tasks.flatMap((group) => group.tasks)) {
    const [name] = task.names;
    const [before, largest] = await readPlans(task, regions.slice(-2), log);
    if (before === undefined || largest === undefined) throw new Error('two regions are compared at least');
    if (largest.size === 0) throw new Error(`PostgreSQL logged no plan for ${name}`);
    for (const [scan, rows] of largest) {
      const table = scan.split(' ').at(-1) ?? '';
      const isMore = rows > worthNaming + 1.5 * sumRows(before, table);
      if (grown.has(table) && isMore) problems.push(`${name}: reads ${rows} rows of ${table} by ${scan}`);
    }
    const [few, many] = [before, largest].map((rows) => [...rows.values()].reduce((sum, each) => sum + each, 0));
    say(`${String(name).padEnd(46)}${String(few).padStart(12)}${String(many).padStart(12)}`);
  }
  await setServer(servers.postgres.adminUrl, { 'auto_explain.log_min_duration': '-1' });
  return problems;
}

/** Returns the number of rows that all scans together read from a table. */
const sumRows = (scans: ReadonlyMap<string, number>, table: string): number =>
  [...scans].reduce((sum, [scan, rows]) => sum + (scan.endsWith(` ${table}`) ? rows : 0), 0);

/** Returns the rows that each kind of scan reads while the task runs, in each region. */
async function readPlans(task: Task, regions: readonly GrownRegion[], log: string): Promise<Map<string, number>[]> {
  const read: Map<string, number>[] = [];
  for (const region of regions) {
    const from = statSync(log).size;
    await task.run(region);
    read.push(sumScans(readFileSync(log).subarray(from).toString()));
  }
  return read;
}

/** Sums the rows that the scans of all plans in a part of the log read, by kind and table. */
function sumScans(log: string): Map<string, number> {
  const sums = new Map<string, number>();
  const add = (node: PlanNode): void => {
    const table = node['Relation Name'];
    if (table !== undefined && node['Node Type'] !== 'ModifyTable') {
      const kind = `${node['Node Type']} ${getTableName(table)}`;
      const rows = ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 0);
      sums.set(kind, Math.round((sums.get(kind) ?? 0) + rows));
    }
    for (const part of node.Plans ?? []) add(part);
  };
  for (const [, text] of log.matchAll(/ plan:\n(\t\{[\s\S]*?\n\t\})/g)) {
    const { Plan } = JSON.parse(text?.replaceAll('\n\t', '\n') ?? '{}') as { Plan?: PlanNode };
    if (Plan !== undefined) add(Plan);
  }
  return sums;
}

/** Partitions count as their table: `audit_entry_2026_01` is `audit_entry`. */
const getTableName = (table: string): string => table.replace(/_(\d{4}_\d{2}|default)$/, '');
