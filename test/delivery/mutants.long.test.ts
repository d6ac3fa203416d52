import { expect, it } from 'vitest';
import { setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';
import { allScenarios, findReason, findSurvivors, listMutants, listStale, runScenario } from './mutants.ts';

const shared = shareInstallation(setupEngine);

it('a scenario fails without any one part of a statement of the engine', { timeout: 3_600_000 }, async () => {
  const engine = shared();
  for (const name of Object.keys(allScenarios)) await runScenario(engine, name);
  const mutants = await listMutants(engine);
  expect(mutants.length).toBeGreaterThan(400);
  expect(listStale(mutants)).toEqual([]);
  const only = new RegExp(process.env.MUTANTS ?? '');
  const survivors = await findSurvivors(
    engine,
    mutants.filter(({ name }) => only.test(name) && findReason(name) === undefined),
  );
  expect(survivors).toEqual([]);
});
