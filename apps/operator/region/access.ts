import type { Database } from '#domain/db/database.ts';
import type { AllowList } from '#domain/webhooks/address/addresses.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { addressBlocks } from '#runtime/settings/types.ts';
import { ReconcileError } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import type { Connections } from './connections.ts';
import { readSealingKeys } from './sealing-keys.ts';

/** What the Region of the namespace gives to the other kinds. */
export interface RegionAccess {
  /** Ids of organizations; `*` stands for all. */
  allowedOrganizations: readonly string[];
  /** Over the login of the role `org_api_operator`. */
  database: Database;
  /**
   * Reads what webhooks are created and changed with. Their deletion needs none of it.
   *
   * @throws ReconcileError when the Secret of the keys is missing, or either has another form.
   */
  readWebhookSettings(): Promise<WebhookSettings>;
}

interface WebhookSettings {
  sealingKeys: SealingKeys;
  /** Addresses that webhooks may use although they are not public. */
  allow: AllowList;
}

/**
 * Returns the access to the namespace's Region; null when there is none.
 *
 * @throws ReconcileError when the Secret of its database is missing or has another form, or the
 * Region is of another region than this operator.
 */
export type GetRegion = () => Promise<RegionAccess | null>;

/** Makes that function for the Region that `findRegion` returns from memory. */
export function createRegionAccess(
  connections: Connections,
  findRegion: () => Region | undefined,
  ownRegion: string,
): GetRegion {
  return async () => {
    const region = findRegion();
    if (region === undefined) return null;
    assertRegion(region, ownRegion);
    const { allowedOrganizations = [] } = region.spec;
    const database = await connections.openDatabase(region);
    return { allowedOrganizations, database, readWebhookSettings: () => readWebhookSettings(region, connections) };
  };
}

async function readWebhookSettings(region: Region, connections: Connections): Promise<WebhookSettings> {
  const sealingKeys = await readSealingKeys(region, connections);
  const allow = addressBlocks.safeParse(region.spec.webhooks?.allow.join(',') ?? '');
  if (!allow.success) throw new ReconcileError('AllowMalformed', 'webhooks.allow must list addresses and CIDR blocks.');
  return { sealingKeys, allow: allow.data };
}

/** @throws ReconcileError when a Region is of another region than this operator. */
export function assertRegion({ spec: { region } }: Region, ownRegion: string): void {
  if (region === ownRegion) return;
  throw new ReconcileError('OtherRegion', `The Region is of ${region}, and the operator of ${ownRegion} (REGION).`);
}
