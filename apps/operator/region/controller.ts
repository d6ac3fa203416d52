import { setDeliveryAdmission } from '#domain/webhooks/delivery-admission.ts';
import type { Controller, JudgedCondition } from '../controller/contract.ts';
import { kinds, type Region } from '../resources.ts';
import { type AdmissionAction, nameAdmission, planAdmission } from './admission.ts';
import type { Connections } from './connections.ts';
import { type ObservedRegion, observeRegion } from './observe.ts';
import { reportRegion } from './report.ts';

/** How often a region is looked at: its state is not in Kubernetes, so no watch shows it. */
const resyncMs = 15_000;

/** Keeps the status of a Region true, and holds its deliveries when the spec says so. */
export function createRegionController(options: {
  connections: Connections;
  onReport: (conditions: JudgedCondition[]) => void;
}): Controller<Region, ObservedRegion, AdmissionAction> {
  return {
    kind: kinds.Region,
    resyncMs,
    observe: (region) => observeRegion(region, options.connections),
    plan: planAdmission,
    async execute({ state }, region) {
      const { pool } = await options.connections.openDatabase(region);
      await setDeliveryAdmission(pool, state);
    },
    describe: ({ state }) => ({
      reason: 'DeliveryStateSet',
      message: `The state of deliveries is ${nameAdmission(state)}.`,
    }),
    report(region, observed, failure) {
      const report = reportRegion(region, observed, failure);
      options.onReport(report.conditions);
      return report;
    },
  };
}
