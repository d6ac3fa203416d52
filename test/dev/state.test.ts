import { statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { openState } from '../../apps/dev/state.ts';

describe('the secrets of a stack', () => {
  it('are generated once, for each region, and only their owner may read them', () => {
    const folder = temporaryFolder();
    const state = openState(folder);

    const us = state.getMemory('us');
    const ca = state.getMemory('ca');

    expect(us).toMatchObject({ webhookSecretKeys: expect.stringMatching(/^1:[A-Za-z0-9+/]{43}=$/) });
    expect(Object.values(ca)).not.toContain(us.webhookSecretKeys);
    for (const reopened of [state, openState(folder)])
      expect([reopened.getMemory('us'), reopened.getMemory('ca')]).toEqual([us, ca]);
    expect(statSync(path.join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
  });
});
