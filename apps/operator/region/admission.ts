import type { AdmissionState, DeliveryAdmission } from '#domain/webhooks/delivery-admission.ts';
import { condition } from '../controller/conditions.ts';
import type { JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

export interface AdmissionAction {
  kind: 'setAdmission';
  state: AdmissionState;
}

type DeclaredState = NonNullable<Region['spec']['delivery']>['state'];

const declared = { running: 'Running', paused: 'Paused', draining: 'Draining' } as const satisfies Record<
  AdmissionState,
  DeclaredState
>;
const stored: Record<DeclaredState, AdmissionState> = { Running: 'running', Paused: 'paused', Draining: 'draining' };

/** Returns what is left to do so that deliveries are sent as the spec says; nothing without it. */
export function planAdmission({ spec }: Region, { database }: ObservedRegion): AdmissionAction[] {
  if (spec.delivery === undefined || isUnreadable(database)) return [];
  const state = stored[spec.delivery.state];
  return database.admission.state === state ? [] : [{ kind: 'setAdmission', state }];
}

/** Names the state of admission as specs and statuses do. */
export const nameAdmission = (state: AdmissionState): DeclaredState => declared[state];

/** Reports whether deliveries are sent. Those held on purpose leave the region Ready. */
export function judgeAdmission({ database }: ObservedRegion): JudgedCondition {
  const type = 'Delivering';
  if (isUnreadable(database)) return condition(type, null, database.reason, database.message);
  return judge(type, database.admission);
}

function judge(type: string, { state, underWay, isDrained }: DeliveryAdmission): JudgedCondition {
  if (state === 'running') return condition(type, true, 'Sending', 'Deliveries are sent.');
  if (state === 'paused')
    return condition(type, false, 'Paused', `Deliveries are paused, and events are kept. Under way: ${underWay}.`);
  return isDrained
    ? condition(type, false, 'Drained', 'No attempt is under way, and none can begin.')
    : condition(type, false, 'Draining', `No attempt begins any more. Under way: ${underWay}.`);
}
