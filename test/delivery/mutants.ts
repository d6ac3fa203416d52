import { holdsBack, unblockNextSql } from '#delivery/sql/order.ts';
import { type Engine, originals, type Statements } from '#test/delivery-engine.ts';
import { scenarios } from './scenarios.ts';
import { scenariosBesideOthers } from './scenarios-beside-others.ts';
import { type Mutant, mutate } from './sql-mutants.ts';
import { survivors } from './surviving-mutants.ts';

export const allScenarios = { ...scenarios, ...scenariosBesideOthers };

type Name = keyof Statements;

/** The functions of PostgreSQL, with the statements that call them; every scenario stores events. */
const functions: Record<string, readonly Name[] | null> = {
  free_posts: ['claimDeliveriesSql', 'admitAttemptSql', 'listQueuedSql'],
  posts_full_after: ['admitAttemptSql'],
  free_slots: ['claimDeliveriesSql', 'admitAttemptSql'],
  claim_deliveries: ['claimDeliveriesSql'],
  admit_attempt: ['admitAttemptSql'],
  next_attempt_number: ['recordOutcomeSql'],
  record_event: null,
};

/** Parts of several statements: a mutant of one changes it in each, as its source does. */
const parts: Record<string, (settled: string) => string> = {
  unblockNextSql,
  holdsBack: () => holdsBack,
};
const settledNames = ['settled', 'target', 'settled_rows'];
const shared = Object.values(parts).flatMap((part) => settledNames.map(part));

/** What no rule makes: a text of a statement or function, and what replaces it. */
const byHand: readonly [where: string, from: string, to: string][] = [
  ['claim_deliveries', 'random()', 'r.created_at'],
  ['admit_attempt', 'd.failures >= cardinality(waits)', 'd.failures > cardinality(waits)'],
  ['admit_attempt', 'from delivery d join slot_lock o', 'from slot_lock o join delivery d'],
  ['recordOutcomeSql', 'from target\n', 'from target where exists (select from delivery_attempt a where a.id = $6)\n'],
];

/** Returns the mutants of a text, by rule and by hand. */
function mutateText(where: string, sql: string): Mutant[] {
  const others = byHand.filter(([name]) => name === where);
  return [
    ...mutate(sql, shared),
    ...others.map(([, from, to]) => ({ change: `${from} → ${to}`.trim(), text: sql.replaceAll(from, () => to) })),
  ];
}

/** A mutant of the engine's SQL. */
export interface EngineMutant {
  /** The statement, the function or the part of statements, and what is changed of it. */
  name: string;
  /** The statements that it changes; null when any scenario may see it. */
  statements: readonly Name[] | null;
  /** Makes the change. Returns a function that undoes it. */
  apply(engine: Engine): Promise<() => Promise<void>>;
}

const names = Object.keys(originals) as Name[];

/** Lists the mutants of all statements and functions, without those that are known to survive. */
export async function listMutants(engine: Engine): Promise<EngineMutant[]> {
  const mutants: EngineMutant[] = names.flatMap((where) =>
    mutateText(where, originals[where]).map(({ change, text }) => ({
      name: `${where}: ${change}`,
      statements: [where],
      apply: (engine) => replaceStatements(engine, (name, original) => (name === where ? text : original)),
    })),
  );
  for (const [where, part] of Object.entries(parts)) {
    const uses = (name: Name) => settledNames.some((settled) => originals[name].includes(part(settled)));
    for (const { change, text } of mutate(part('settled_rows'), where === 'holdsBack' ? [] : [holdsBack]))
      mutants.push({
        name: `${where}: ${change}`,
        statements: names.filter(uses),
        apply: (engine) =>
          replaceStatements(engine, (_, original) =>
            settledNames.reduce(
              (sql, settled) => sql.replaceAll(part(settled), () => text.replaceAll('settled_rows', settled)),
              original,
            ),
          ),
      });
  }
  for (const [where, statements] of Object.entries(functions)) {
    const values = [where];
    const { rows } = await engine.owner.query('select pg_get_functiondef($1::regproc) as text', values);
    for (const { change, text } of mutateText(where, rows[0].text))
      mutants.push({
        name: `${where}: ${change}`,
        statements,
        apply: async ({ owner }) => {
          await owner.query(text);
          return async () => void (await owner.query(rows[0].text));
        },
      });
  }
  return mutants;
}

async function replaceStatements({ statements }: Engine, replace: (name: Name, original: string) => string) {
  for (const name of names) statements[name] = replace(name, originals[name]);
  return async () => void Object.assign(statements, originals);
}

/** The statements that each scenario sends. */
const sent = new Map<string, ReadonlySet<Name>>();

/** Runs a scenario in the engine's database, where it sees only its own rows. @throws Error when it does not hold. */
export async function runScenario(engine: Engine, name: string): Promise<void> {
  await engine.reset();
  engine.sent.clear();
  await allScenarios[name]?.(engine);
  if (!sent.has(name)) sent.set(name, new Set(engine.sent));
}

/**
 * Runs the scenarios that send a mutant's statements until one fails, for each mutant; those first that failed last.
 * Each scenario must have run before. Returns the names of the mutants without which every scenario holds.
 */
export async function findSurvivors(engine: Engine, mutants: readonly EngineMutant[]): Promise<string[]> {
  const order = Object.keys(allScenarios);
  const found: string[] = [];
  for (const mutant of mutants) {
    const restore = await mutant.apply(engine).catch(ignoreInvalid);
    if (restore === null) continue;
    const candidates = order.filter((name) => mutant.statements?.some((one) => sent.get(name)?.has(one)) ?? true);
    const killer = await findKiller(engine, candidates);
    await restore();
    if (killer === null) {
      process.stdout.write(`survives: ${mutant.name}\n`);
      found.push(mutant.name);
    } else order.unshift(...order.splice(order.indexOf(killer), 1));
  }
  return found;
}

async function findKiller(engine: Engine, candidates: readonly string[]): Promise<string | null> {
  for (const name of candidates) {
    const failed = await runScenario(engine, name).then(
      () => false,
      () => true,
    );
    if (failed) return name;
  }
  return null;
}

/** A change that PostgreSQL does not accept cannot be made without being seen. */
function ignoreInvalid(error: { code?: string }): null {
  if (error.code?.startsWith('42') !== true) throw error;
  return null;
}

/** Whether a mutant is known to survive, and why. */
export const findReason = (name: string): string | undefined =>
  Object.entries(survivors).find(([, known]) => known.some((one) => isMatch(one, name)))?.[0];

/** Known survivors that no rule makes any more. */
export const listStale = (mutants: readonly EngineMutant[]): string[] =>
  Object.values(survivors)
    .flat()
    .filter((known) => !mutants.some(({ name }) => isMatch(known, name)));

const isMatch = (known: string, name: string) =>
  known === name || (known.endsWith('…') && name.startsWith(known.slice(0, -1)));
