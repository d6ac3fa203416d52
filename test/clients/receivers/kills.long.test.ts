import { expect, it } from 'vitest';
import { kitsWithDatabases } from './databases.ts';
import { runKills } from './kills.ts';

it.each(kitsWithDatabases)(
  'a receiver kit that is killed 1,000 times applies each event once and in order: %s with %s',
  {
    timeout: 3_600_000,
  },
  async (kit, _name, open) => {
    const remains = await runKills({ kit, ...(await open()), kills: 1_000, grants: 300 });
    expect(remains).toMatchObject({ kills: 1_000, missing: 0, twice: 0, wrongStates: 0, gaps: 0, forgedAccepted: 0 });
  },
);
