import { describe, expect, it } from 'vitest';
import { type Engine, originals, type Statements, setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';
import { type Mutant, mutants } from './mutants.ts';
import { scenarios } from './scenarios.ts';

describe('without this guard of a statement, a scenario fails', () => {
  const engine = shareInstallation(setupEngine);
  for (const mutant of mutants) {
    it(`${mutant.where}: ${mutant.change}`, async () => {
      const holds = scenarios[mutant.caughtBy];
      if (holds === undefined) throw new Error(`no scenario ${mutant.caughtBy}`);
      await engine().reset();
      const restore = await breakGuard(engine(), mutant);
      try {
        const error = await holds(engine()).then(
          () => 'none',
          (thrown: unknown) => thrown,
        );
        expect(error, 'the scenario holds without the guard').not.toBe('none');
        // A statement that PostgreSQL cannot run at all proves nothing.
        expect((error as { code?: string }).code ?? '').not.toMatch(/^42/);
      } finally {
        await restore();
      }
    });
  }
});

/** Applies a mutant. Returns a function that undoes it. */
async function breakGuard(engine: Engine, { where, from, to }: Mutant): Promise<() => Promise<void>> {
  const replace = (text: string) => {
    const changed = typeof from === 'string' ? text.replaceAll(from, () => to) : text.replace(from, () => to);
    expect(changed, `${from} is not part of ${where}`).not.toBe(text);
    return changed;
  };
  if (isStatement(where)) {
    engine.statements[where] = replace(engine.statements[where]);
    return async () => {
      engine.statements[where] = originals[where];
    };
  }
  const { rows } = await engine.owner.query<{ text: string }>('select pg_get_functiondef($1::regproc) as text', [
    where,
  ]);
  const text = rows[0]?.text ?? '';
  await engine.owner.query(replace(text));
  return async () => void (await engine.owner.query(text));
}

const isStatement = (name: Mutant['where']): name is keyof Statements => name in originals;
