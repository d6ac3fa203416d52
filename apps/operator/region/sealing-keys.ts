import { z } from 'zod';
import type { SealingKeys } from '#domain/encryption/envelope.ts';
import { countSealed, type Sealing } from '#domain/resealing/count.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { trySecrets } from '#runtime/settings/try-secrets.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { ReconcileError } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import type { Connections } from './connections.ts';

const Settings = z.object({ WEBHOOK_SECRET_KEYS: webhookSecretKeys });

/** Reads WEBHOOK_SECRET_KEYS from the Secret that a Region names. @throws ReconcileError */
export async function readSealingKeys({ spec: { webhooks } }: Region, connections: Connections): Promise<SealingKeys> {
  if (webhooks === undefined) {
    connections.forget('WEBHOOK_SECRET_KEYS');
    throw new ReconcileError('NoSecretKeys', 'The Region names no webhooks.secretKeysRef.');
  }
  const { value } = await connections.readValue<SealingKeys>('WEBHOOK_SECRET_KEYS', {
    identity: JSON.stringify(webhooks.secretKeysRef),
    text: await connections.readKey(webhooks.secretKeysRef, 'WEBHOOK_SECRET_KEYS'),
    parse: (text) => readSettings(Settings, { WEBHOOK_SECRET_KEYS: text }).WEBHOOK_SECRET_KEYS,
    tryValue: trySecrets,
  });
  return value;
}

/** Counts what is sealed with which key. @throws ReconcileError */
export async function readSealing(region: Region, connections: Connections): Promise<Sealing> {
  const keys = await readSealingKeys(region, connections);
  return countSealed(await connections.openDatabase(region), keys);
}
