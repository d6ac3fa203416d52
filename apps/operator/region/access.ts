import { addressBlocks } from '#runtime/settings/types.ts';
import { ReconcileFailed } from '../controller/contract.ts';
import type { GetRegion } from '../region-access.ts';
import type { Region } from '../resources.ts';
import type { Connections } from './connections.ts';
import { readSealingKeys } from './sealing-keys.ts';

/**
 * Gives the other kinds what the namespace's Region names. @throws ReconcileFailed without a
 * Region, or when a Secret that it names is missing or has another form.
 */
export function createRegionAccess(options: {
  connections: Connections;
  findRegion: () => Region | undefined;
}): GetRegion {
  const { connections, findRegion } = options;
  return async () => {
    const region = findRegion();
    if (region === undefined) throw new ReconcileFailed('NoRegion', 'There is no Region in this namespace.');
    const { allowedOrganizations = [], webhooks } = region.spec;
    const sealingKeys = await readSealingKeys(region, connections);
    const allow = addressBlocks.safeParse(webhooks?.allow.join(',') ?? '');
    if (!allow.success)
      throw new ReconcileFailed('AllowMalformed', 'webhooks.allow must list addresses and CIDR blocks.');
    const { orm } = await connections.openDatabase(region);
    return { allowedOrganizations, em: orm.em, sealingKeys, allow: allow.data };
  };
}
