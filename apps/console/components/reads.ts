import { operationsOfScope } from '#domain/contract/operations.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import { reads } from './action-sentences.ts';

/** Returns what operations read, in words: `the members, the roles`. */
export const describeReads = (operations: readonly string[]): string =>
  operations.map((operation) => reads[operation] ?? operation).join(', ');

/** Returns what the operations of a scope read, in words. */
export const describeScope = (scope: Scope): string => describeReads(operationsOfScope[scope]);
