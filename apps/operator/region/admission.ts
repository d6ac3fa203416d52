import type { AdmissionState } from '#domain/webhooks/delivery-admission.ts';
import { capitalize, conditionsOf } from '../controller/conditions.ts';
import type { JudgedCondition } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

export interface AdmissionAction {
  kind: 'setAdmission';
  state: AdmissionState;
}

/** Returns what is left to do so that deliveries are sent as the spec says; nothing without it. */
export function planAdmission({ spec }: Region, { database }: ObservedRegion): AdmissionAction[] {
  if (spec.delivery === undefined || isUnreadable(database)) return [];
  if (capitalize(database.admission.state) === spec.delivery.state) return [];
  return [{ kind: 'setAdmission', state: spec.delivery.state.toLowerCase() as AdmissionState }];
}

const { holds, fails, unknown } = conditionsOf('Delivering');

/** Reports whether deliveries are sent. Those held on purpose leave the region Ready. */
export function judgeAdmission({ database }: ObservedRegion): JudgedCondition {
  if (isUnreadable(database)) return unknown(database.reason, database.message);
  const { state, underWay, isDrained } = database.admission;
  if (state === 'running') return holds('Sending', 'Deliveries are sent.');
  if (state === 'paused') return fails('Paused', `Deliveries are paused, and events are kept. Under way: ${underWay}.`);
  return isDrained
    ? fails('Drained', 'No attempt is under way, and none can begin.')
    : fails('Draining', `No attempt begins any more. Under way: ${underWay}.`);
}
