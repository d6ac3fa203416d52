import type { DeliverySwitch, SwitchState } from '#domain/webhooks/delivery-switch.ts';
import { capitalize, createConditions } from '../controller/conditions.ts';
import type { Failure, ReportedCondition } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

export interface SwitchAction {
  kind: 'setDeliverySwitch';
  state: SwitchState;
}

/** Returns what is left to do so that deliveries are sent as the spec says; nothing without it. */
export function planSwitch({ spec }: Region, { database }: ObservedRegion): SwitchAction[] {
  if (spec.delivery === undefined || isUnreadable(database)) return [];
  if (capitalize(database.deliverySwitch.state) === spec.delivery.state) return [];
  return [{ kind: 'setDeliverySwitch', state: spec.delivery.state.toLowerCase() as SwitchState }];
}

const { holds, fails, unknown } = createConditions('Delivering');

/**
 * Reports whether deliveries are sent, and why their state could not be set. Those held on purpose
 * leave the region Ready.
 */
export function evaluateSwitch({ database }: ObservedRegion, failures: readonly Failure[]): ReportedCondition {
  if (isUnreadable(database)) return unknown(database.reason, database.message);
  const found = evaluateState(database.deliverySwitch);
  const failure = failures.find(({ action }) => action === 'setDeliverySwitch');
  if (failure === undefined) return found;
  return { ...found, reason: failure.reason, message: `${found.message} ${failure.message}` };
}

function evaluateState({ state, underWay, isDrained }: DeliverySwitch): ReportedCondition {
  if (state === 'running') return holds('Sending', 'Deliveries are sent.');
  if (state === 'paused') return fails('Paused', `Deliveries are paused, and events are kept. Under way: ${underWay}.`);
  return isDrained
    ? fails('Drained', 'No attempt is under way, and none can begin.')
    : fails('Draining', `No attempt begins any more. Under way: ${underWay}.`);
}
