import { describe, expect, it } from 'vitest';
import { setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';
import { allScenarios, findReason, findSurvivors, listMutants, runScenario } from './mutants.ts';

/** Mutants of a usual run, chosen by a seed; `mutants.long.test.ts` tries all. */
const sample = 30;

describe('the statements of the engine', () => {
  const engine = shareInstallation(setupEngine);
  for (const name of Object.keys(allScenarios)) it(name, () => runScenario(engine(), name));

  it('fail a scenario without any part of a few of them', { timeout: 600_000 }, async () => {
    const seed = Number(process.env.MUTANTS_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`MUTANTS_SEED=${seed}`);
    const mutants = (await listMutants(engine())).filter(({ name }) => findReason(name) === undefined);
    const step = Math.ceil(mutants.length / sample);
    const chosen = mutants.filter((_, index) => index % step === seed % step);
    expect(await findSurvivors(engine(), chosen)).toEqual([]);
  });
});
