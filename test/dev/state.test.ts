import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openState } from '../../apps/dev/state.ts';

describe('the secrets of a stack', () => {
  it('are generated once, for each region, and only their owner may read them', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'org-api-state-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const state = openState(folder);

    const us = state.getSecrets('us');
    const ca = state.getSecrets('ca');

    expect(us).toMatchObject({ webhookSecretKeys: expect.stringMatching(/^1:[A-Za-z0-9+/]{43}=$/) });
    expect(Object.values(ca)).not.toContain(us.webhookSecretKeys);
    for (const reopened of [state, openState(folder)])
      expect([reopened.getSecrets('us'), reopened.getSecrets('ca')]).toEqual([us, ca]);
    expect(statSync(path.join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
  });
});
