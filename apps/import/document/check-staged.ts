import type { Client } from 'pg';
import { clientChecks } from './check-clients.ts';
import { identityChecks } from './check-identity.ts';
import { listedProblemsMax, type Problem, type ProblemList } from './problems.ts';
import type { DocumentClock } from './resolve.ts';

/** Adds every problem that only shows across objects of the document, or against the database. */
export async function checkStaged(client: Client, clock: DocumentClock, problems: ProblemList): Promise<void> {
  for (const check of [...identityChecks, ...clientChecks(clock)]) {
    await client.query(`insert into import_problem ${check}`);
  }
  const { rows } = await client.query<Problem>('select distinct path, problem from import_problem limit $1', [
    listedProblemsMax,
  ]);
  // A field that is wrong by itself is staged as absent, which is no second problem of it.
  const added = rows.filter(({ path }) => !problems.listed.some((listed) => listed.path === path));
  for (const { path, problem } of added) problems.add(path, problem);
  const { rows: totals } = await client.query<{ total: string }>(
    'select count(*) as total from (select distinct path, problem from import_problem) as p',
  );
  problems.countMore(Number(totals[0]?.total ?? 0) - rows.length);
}
