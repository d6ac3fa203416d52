/** When the operator runs contract migrations, and how the status reports them. */
import { describe, expect, it } from 'vitest';
import { judgeContract, planContract } from '../../apps/operator/region/contract.ts';
import type { ObservedContract } from '../../apps/operator/region/contract-job.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';
import { quietDatabase, quietRegion, regionWith } from './region.ts';

const gate = { mode: 'Gate' as const, cronJob: 'org-api-contract' };
const job = (state: ObservedContract['job']['state']) => ({
  contract: { job: { name: 'org-api-contract-1a2b', state }, otherPods: [] },
});
const database = { ...quietDatabase, pendingContract: ['0012-drop-column'] };
const ready: ObservedRegion = { ...quietRegion, database, ...job('absent') };
const blocked = { reason: 'ContractBlocked' as const, message: 'There is no CronJob org-api-contract.' };
const otherPods = { contract: { ...job('absent').contract, otherPods: ['api-1'] } };

describe('the contract migrations of a region', () => {
  it.each<[string, Partial<ObservedRegion>, boolean, string]>([
    ['start when nothing needs the version before', {}, true, 'True ContractPending'],
    [
      'wait for the expand migrations',
      { database: { ...database, migrations: ['0001'] } },
      false,
      'True ContractPending',
    ],
    ['wait for pods of another image', otherPods, false, 'True ContractPending'],
    ['are not started again while their Job runs', job('running'), false, 'True ContractRunning'],
    ['are not started again when their Job failed', job('failed'), false, 'False ContractFailed'],
    ['are not started again when their Job left them pending', job('succeeded'), false, 'True ContractBlocked'],
    ['wait without the CronJob', { contract: blocked }, false, 'True ContractBlocked'],
  ])('%s', (_, change, isStarted, expected) => {
    const region = regionWith({ migrations: gate });
    const observed = { ...ready, ...change };
    const judged = judgeContract(region, observed, null);

    const action = { kind: 'startContract', job: 'org-api-contract-1a2b', pending: ['0012-drop-column'] };
    expect(planContract(observed)).toEqual(isStarted ? [action] : []);
    expect(`${judged?.status} ${judged?.reason}`).toBe(expected);
    expect(judged?.message).toContain('0012-drop-column');
  });

  it('wait while a failed migration is recorded', () => {
    const failedMigration = { names: ['0012-drop-column'], code: '22012' };

    expect(planContract({ ...ready, database: { ...database, failedMigration } })).toEqual([]);
  });

  it('say what they wait for', () => {
    const messageOf = (change: Partial<ObservedRegion>) =>
      judgeContract(regionWith({ migrations: gate }), { ...ready, ...change }, null)?.message;

    expect(messageOf(otherPods)).toContain('Pods of another image: api-1.');
  });

  it('are left to people in mode Manual, and the status has the command', () => {
    const region = regionWith({ migrations: { mode: 'Manual', cronJob: 'org-api-contract' } });
    const observed = { ...ready, contract: null };

    expect(planContract(observed)).toEqual([]);
    expect(judgeContract(region, observed, null)).toMatchObject({
      status: 'True',
      reason: 'ContractManual',
      message: expect.stringContaining('kubectl create job --from=cronjob/org-api-contract org-api-contract-1'),
    });
  });

  it('are not mentioned when none is pending', () => {
    const none = { ...ready, database: { ...database, pendingContract: [] }, contract: null };

    expect(judgeContract(regionWith({ migrations: gate }), none, null)).toBeNull();
  });

  it('say that the operator may not create their Job', () => {
    const message = "The operator's Role does not allow it to use Jobs.";

    expect(
      judgeContract(regionWith({ migrations: gate }), ready, { reason: 'ContractBlocked', message }),
    ).toMatchObject({
      status: 'True',
      reason: 'ContractBlocked',
      message: expect.stringContaining(message),
    });
  });
});
