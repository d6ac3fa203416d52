import { describe, it } from 'vitest';
import { setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';
import { scenarios } from './scenarios.ts';

describe('the statements of the engine', () => {
  const engine = shareInstallation(setupEngine);
  for (const [guarantee, holds] of Object.entries(scenarios))
    it(guarantee, async () => {
      await engine().reset();
      await holds(engine());
    });
});
