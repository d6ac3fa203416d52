/** Every function that a login of the database may execute, with hostile arguments. */
import fc from 'fast-check';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { setupConsole } from '../console/setup.ts';
import { type CallableFunction, listFunctions } from './database/catalog.ts';
import { keepState } from './database/effects.ts';
import { type Value, valuesOfType } from './database/hostile-values.ts';
import { stockDatabase } from './database/stock.ts';
import { reportTried, seed, tries } from './tried.ts';

const tried = reportTried('functions of the database');
/** Calls of one transaction, which is rolled back: 40 on average. */
const callsPerRun = 80;

interface Call extends CallableFunction {
  values: Value[];
}

it('no function that a login may execute deletes or changes what has not expired, whatever its arguments', {
  timeout: 300_000,
}, async () => {
  const t = await setupConsole();
  const scenes = await stockDatabase(t);
  const ids = scenes.flatMap(({ orgId, key, webhook, failedEventId, owner }) => [
    orgId,
    key.id,
    webhook.id,
    failedEventId,
    owner.personId,
  ]);
  const logins = Object.values(t.database.urls).map((url) => decodeURIComponent(new URL(url).username));
  const functions = await listFunctions(t.owner.pool, logins);
  expect(functions.length).toBeGreaterThan(10);
  const client = new pg.Client({ connectionString: t.database.ownerUrl });
  await client.connect();
  onTestFinished(() => client.end());
  const listFaults = await keepState(client);
  await client.query(`set statement_timeout = '5s'`);
  const accepted = new Map<string, number>();

  // A function is called the oftener, the more arguments it takes.
  const weighted = functions.flatMap((each) => Array.from({ length: 1 + 2 * each.types.length }, () => each));
  const call = fc
    .constantFrom(...weighted)
    .chain(
      (each): fc.Arbitrary<Call> =>
        fc.tuple(...each.types.map((type) => valuesOfType(type, ids))).map((values) => ({ ...each, values })),
    );
  const calls = fc.array(call, { minLength: 1, maxLength: callsPerRun, size: 'max' });
  const property = fc.asyncProperty(calls, async (made) => {
    await client.query('begin');
    for (const { login, name, types, values } of made) {
      const places = types.map((type, index) => `$${index + 1}::${type}`).join(', ');
      await client.query(`savepoint call; set local session authorization "${login}"`);
      const isAccepted = await client.query(`select * from ${name}(${places})`, values).then(
        () => true,
        () => false,
      );
      await client.query(isAccepted ? 'reset session authorization' : 'rollback to savepoint call');
      tried('calls');
      tried('arguments', values.length);
      const key = `${login} ${name}`;
      accepted.set(key, (accepted.get(key) ?? 0) + Number(isAccepted));
    }
    const faults = await listFaults();
    await client.query('rollback');
    expect(faults).toEqual([]);
  });
  await fc.assert(property, { seed, numRuns: tries(160) });
  // Functions that rejected every argument were hardly tested.
  const isTested = [...accepted.values()].filter((count) => count > 0);
  expect(isTested.length).toBeGreaterThan(accepted.size / 3);
});
