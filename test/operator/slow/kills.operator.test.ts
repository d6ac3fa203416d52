/** Operators that are killed with SIGKILL at each write to a server. */
import { describe, expect, it } from 'vitest';
import { setupDatabase, shareInstallation } from '../../support/setup.ts';
import { setupDeclared } from '../declared.ts';
import { shareApiServer } from '../share-api-server.ts';
import { interrupt, transitions } from '../transitions.ts';

const server = shareApiServer();
const shared = shareInstallation(setupDatabase);

/** Operators that are killed at the same time, each beside objects of its own. */
const killedAtOnce = 3;

describe('an operator that is killed at each request to PostgreSQL and the API server', () => {
  it.each(transitions)(
    'during $name is followed by one that ends it, and does nothing twice',
    {
      timeout: 900_000,
    },
    async (transition) => {
      let afterWrites = 0;
      let isOver = false;
      async function killAtEach(): Promise<void> {
        while (!isOver) {
          afterWrites += 1;
          const killed = `killed after ${afterWrites}`;
          const t = await setupDeclared(server(), shared());
          const { wasReached, recorded, counts } = await interrupt(t, transition, { afterWrites });

          expect(recorded.toSorted(), killed).toEqual(transition.recorded.toSorted());
          if (transition.counts !== undefined) expect(counts, killed).toEqual(transition.counts);
          isOver ||= wasReached;
        }
      }
      await Promise.all(Array.from({ length: killedAtOnce }, killAtEach));
      expect(afterWrites).toBeGreaterThan(transition.actions.length);
      process.stdout.write(`${transition.name}: killed at ${afterWrites} points\n`);
    },
  );
});
