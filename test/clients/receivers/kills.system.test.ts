/** The receiver kits while their processes are killed: 50 times here, and 1,000 times in kills.long.test.ts. */
import { describe, expect, it } from 'vitest';
import { kitsWithDatabases } from './databases.ts';
import { runKills } from './kills.ts';
import { mutations } from './mutations.ts';
import { openSqlite } from './own-databases.ts';

const timeout = 900_000;
const nothingWrong = { missing: 0, twice: 0, wrongStates: 0, gaps: 0, forgedAccepted: 0 };

describe('a receiver kit whose processes are killed 50 times', () => {
  it.each(kitsWithDatabases)(
    'applies each event once and in order: %s with %s',
    { timeout },
    async (kit, _name, open) => {
      const remains = await runKills({ kit, ...(await open()), kills: 50 });
      expect(remains).toMatchObject({ ...nothingWrong, kills: 50 });
    },
  );

  it.each(Object.keys(mutations))('is found without a guarantee: %s', { timeout }, async (mutation) => {
    const remains = await runKills({ kit: 'typescript', ...(await openSqlite()), kills: 15, mutation });
    expect({ ...remains, deliveries: 0, kills: 0 }).not.toEqual({ ...nothingWrong, deliveries: 0, kills: 0 });
  });
});
