import type { Sealing } from '#domain/resealing/count.ts';
import { resealAll } from '#domain/resealing/reseal.ts';
import { createConditions } from '../controller/conditions.ts';
import { type Failure, ReconcileError, type ReportedCondition } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import type { Connections } from './connections.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { readSealingKeys } from './sealing-keys.ts';

export interface SealingAction {
  kind: 'resealSecrets';
  /** Of the key that seals. */
  version: number;
}

/** Plans a reseal with the newest key, if the spec names that key. */
export function planSealing({ spec }: Region, { sealing }: ObservedRegion): SealingAction[] {
  if (spec.sealing === undefined || isUnreadable(sealing)) return [];
  const { newest } = sealing;
  const isOld = sealing.counts.some(({ version }) => isResealable(sealing, version));
  return spec.sealing.resealWith === newest && isOld ? [{ kind: 'resealSecrets', version: newest }] : [];
}

/** Whether another key than the newest sealed it, and is there to open it. */
const isResealable = ({ newest, missing }: Sealing, version: number | null): boolean =>
  version !== null && version !== newest && !missing.includes(version);

/**
 * Seals every stored secret again with the newest key, by the login that the spec names for it.
 * Safe to repeat. @throws ReconcileError when some cannot be opened; the others are done then.
 */
export async function resealSecrets(region: Region, connections: Connections, signal: AbortSignal): Promise<void> {
  const { sealing } = region.spec;
  if (sealing === undefined) return;
  const keys = await readSealingKeys(region, connections);
  const resealed = await connections.withLogin(region, sealing.databaseSecretRef, (database) =>
    resealAll(database, keys, () => signal.throwIfAborted()),
  );
  const unopened = resealed.reduce((sum, one) => sum + one.unopened.length, 0);
  if (unopened === 0) return;
  throw new ReconcileError(
    'SecretNotUnsealed',
    `${unopened} stored secrets could not be opened. \`orgctl secrets reseal\` lists them.`,
  );
}

const { holds, fails, unknown } = createConditions('KeysFresh');

/** Evaluates whether an older key is no longer needed. The region is Ready either way. */
export function evaluateKeys({ sealing }: ObservedRegion, failures: readonly Failure[]): ReportedCondition {
  const failure = failures.find(({ action }) => action === 'resealSecrets');
  if (failure !== undefined) return fails(failure.reason, failure.message);
  if (isUnreadable(sealing)) return unknown(sealing.reason, sealing.message);
  const { newest, counts, missing, unused } = sealing;
  if (missing.length > 0) {
    const message = `Stored secrets need key versions that WEBHOOK_SECRET_KEYS lacks: ${missing.join(', ')}.`;
    return fails('SealingKeyMissing', message);
  }
  const old = counts.filter(({ version }) => version !== newest).reduce((sum, { rows }) => sum + rows, 0);
  if (old > 0) return fails('OldKeySeals', `${old} stored secrets are not sealed with key version ${newest}.`);
  const removable = unused.length === 0 ? '' : ` No stored secret needs version ${unused.join(', ')}.`;
  return holds('NewestKeySeals', `Key version ${newest} seals every stored secret.${removable}`);
}

/** Returns how many stored secrets need each version, for the status. */
export function showSealed({ sealing }: ObservedRegion): { version: number; count: number }[] | undefined {
  if (isUnreadable(sealing)) return undefined;
  const sums = new Map<number, number>();
  for (const { version, rows } of sealing.counts)
    if (version !== null) sums.set(version, (sums.get(version) ?? 0) + rows);
  return [...sums].sort(([a], [b]) => a - b).map(([version, count]) => ({ version, count }));
}
