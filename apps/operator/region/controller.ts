import { setDeliveryAdmission } from '#domain/webhooks/delivery-admission.ts';
import type { Controller, JudgedCondition } from '../controller/contract.ts';
import { kinds, type Region } from '../resources.ts';
import { type AdmissionAction, nameAdmission, planAdmission } from './admission.ts';
import type { Connections } from './connections.ts';
import { type ObservedRegion, observeRegion } from './observe.ts';
import { reportRegion } from './report.ts';
import { planSealing, resealSecrets, type SealingAction } from './sealing.ts';

type RegionAction = AdmissionAction | SealingAction;

/** How often a region is looked at: its state is not in Kubernetes, so no watch shows it. */
const resyncMs = 15_000;

/** Keeps the status of a Region true, holds its deliveries, and seals its secrets again as the spec says. */
export function createRegionController(options: {
  connections: Connections;
  onReport: (conditions: JudgedCondition[]) => void;
}): Controller<Region, ObservedRegion, RegionAction> {
  return {
    kind: kinds.Region,
    resyncMs,
    observe: (region) => observeRegion(region, options.connections),
    plan: (region, observed) => [...planAdmission(region, observed), ...planSealing(region, observed)],
    async execute(action, region, signal) {
      const { connections } = options;
      if (action.kind === 'resealSecrets') return resealSecrets(region, connections, signal);
      const { pool } = await connections.openDatabase(region);
      await setDeliveryAdmission(pool, action.state);
    },
    describe: (action) =>
      action.kind === 'resealSecrets'
        ? { reason: 'SecretsResealed', message: `Key version ${action.version} seals every stored secret.` }
        : { reason: 'DeliveryStateSet', message: `The state of deliveries is ${nameAdmission(action.state)}.` },
    report(region, observed, failure) {
      const report = reportRegion(region, observed, failure);
      options.onReport(report.conditions);
      return report;
    },
  };
}
