import { setDeliverySwitch } from '#domain/webhooks/delivery-switch.ts';
import { capitalize } from '../controller/conditions.ts';
import type { Controller, Note, ReportedCondition } from '../kube/custom-resource.ts';
import { kinds, type Region } from '../kube/resources.ts';
import { assertRegion } from './access.ts';
import type { Connections } from './connections.ts';
import { planSwitch, type SwitchAction } from './delivery-switch.ts';
import { type ObservedRegion, observeRegion, withinPass } from './observe.ts';
import { reportRegion } from './report.ts';
import { planSealing, resealSecrets, type SealingAction } from './sealing.ts';
import { planTemporal } from './temporal.ts';
import { changeNamespace, type TemporalAction } from './temporal-namespace.ts';

/** How often a region is looked at: its state is not in Kubernetes, so no watch shows it. */
const resyncMs = 15_000;

type RegionAction = SwitchAction | SealingAction | TemporalAction;

/**
 * Keeps the status of a Region true. Pauses its deliveries, seals its secrets again and sets
 * up Temporal's namespace as the spec says.
 */
export function createRegionController(
  connections: Connections,
  options: {
    /** Code of the region that this operator is for. */
    region: string;
    /** Called with all conditions of the Region; none: it is gone. */
    onReport: (conditions: ReportedCondition[]) => void;
  },
): Controller<Region, ObservedRegion, RegionAction> {
  return {
    kind: kinds.Region,
    resyncMs,
    areActionsIndependent: true,
    warnings: ['MigrationFailed'],
    async observe(region) {
      assertRegion(region, options.region);
      return observeRegion(region, connections);
    },
    plan: (region, observed) => [
      ...planSwitch(region, observed),
      ...planSealing(region, observed),
      ...planTemporal(region, observed),
    ],
    async execute(action, region, signal) {
      switch (action.kind) {
        case 'setDeliverySwitch':
          return setDeliverySwitch(await connections.openDatabase(region), action.state);
        case 'resealSecrets':
          return resealSecrets(region, connections, signal);
        case 'createNamespace':
        case 'setRetention': {
          const connection = await connections.openTemporal(region);
          const { namespace } = region.spec.temporal;
          return withinPass(connection, () => changeNamespace(connection, namespace, action));
        }
      }
    },
    describe,
    async onGone() {
      options.onReport([]);
      await connections.drop();
    },
    report(region, observed, failures) {
      const report = reportRegion(region, observed, failures);
      options.onReport(report.conditions);
      return report;
    },
  };
}

function describe(action: RegionAction): Note | null {
  switch (action.kind) {
    case 'setDeliverySwitch':
      return { reason: 'DeliveryStateSet', message: `The state of deliveries is ${capitalize(action.state)}.` };
    case 'resealSecrets':
      return { reason: 'SecretsResealed', message: `Key version ${action.version} seals every stored secret.` };
    case 'createNamespace':
      return { reason: 'NamespaceCreated', message: 'Temporal has the namespace of this region.' };
    case 'setRetention':
      return { reason: 'RetentionSet', message: `Temporal keeps closed workflows for ${action.retentionSeconds} s.` };
  }
}
