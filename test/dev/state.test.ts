import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openState } from '../../apps/dev/state.ts';

describe('the secrets of a stack', () => {
  it('are generated once, and a stack without sealing keys gets them while its other secrets stay', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'org-api-state-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const passwords = { api: 'a', worker: 'w', console: 'c', platform: 'p' };
    const older = { keyPeppers: '1:pepper', keyTagSecrets: 'tag', passwords };
    writeFileSync(path.join(folder, 'secrets.json'), JSON.stringify({ us: older }));
    const state = openState(folder);

    const us = state.getSecrets('us');

    expect(us).toEqual({ ...older, webhookSecretKeys: expect.stringMatching(/^1:[A-Za-z0-9+/]{43}=$/) });
    expect(state.getSecrets('us')).toEqual(us);
    expect(state.findSecrets('us')).toEqual(us);
    const ca = state.getSecrets('ca');
    expect(Object.values(ca)).not.toContain(us.webhookSecretKeys);
    expect(openState(folder).getSecrets('ca')).toEqual(ca);
    expect(openState(folder).getSecrets('us')).toEqual(us);
    expect(statSync(path.join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
  });
});
