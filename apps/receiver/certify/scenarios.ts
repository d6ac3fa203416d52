import type { Scenario } from './scenario.ts';
import { compatibility } from './scenarios/compatibility.ts';
import { operation } from './scenarios/operation.ts';
import { order } from './scenarios/order.ts';
import { repeats } from './scenarios/repeats.ts';
import { signature } from './scenarios/signature.ts';

/** Every scenario, in the order in which they run: the first one finds out whether it accepts events at all. */
export const scenarios: readonly Scenario[] = [...signature, ...repeats, ...order, ...compatibility, ...operation];
