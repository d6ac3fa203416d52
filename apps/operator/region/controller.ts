import type { Controller, JudgedCondition } from '../controller/contract.ts';
import { kinds, type Region } from '../resources.ts';
import type { Connections } from './connections.ts';
import { type ObservedRegion, observeRegion } from './observe.ts';
import { reportRegion } from './report.ts';

/** How often a region is looked at: its state is not in Kubernetes, so no watch shows it. */
const resyncMs = 15_000;

/** Keeps the status of a Region true. It changes nothing in the region itself. */
export function createRegionController(options: {
  connections: Connections;
  onReport: (conditions: JudgedCondition[]) => void;
}): Controller<Region, ObservedRegion, never> {
  return {
    kind: kinds.Region,
    resyncMs,
    observe: (region) => observeRegion(region, options.connections),
    plan: () => [],
    execute: async () => {},
    describe: () => null,
    report(region, observed, failure) {
      const report = reportRegion(region, observed, failure);
      options.onReport(report.conditions);
      return report;
    },
  };
}
