import type { SealingKeys } from '#domain/seal/envelope.ts';
import { countSealed, type Sealing } from '#domain/sealed/count.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { ReconcileFailed } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import type { Connections } from './connections.ts';

/** Reads WEBHOOK_SECRET_KEYS from the Secret that a Region names. @throws ReconcileFailed */
export async function readSealingKeys(
  { spec: { webhooks } }: Region,
  connections: Pick<Connections, 'readKey'>,
): Promise<SealingKeys> {
  if (webhooks === undefined) throw new ReconcileFailed('NoSecretKeys', 'The Region names no webhooks.secretKeysRef.');
  const keys = webhookSecretKeys.safeParse(await connections.readKey(webhooks.secretKeysRef));
  if (keys.success) return keys.data;
  throw new ReconcileFailed('SecretKeysMalformed', 'webhooks.secretKeysRef names no WEBHOOK_SECRET_KEYS.');
}

/** Counts what is sealed with which key. @throws ReconcileFailed */
export async function readSealing(region: Region, connections: Connections): Promise<Sealing> {
  const keys = await readSealingKeys(region, connections);
  const { pool } = await connections.openDatabase(region);
  return countSealed(pool, keys);
}
