import { findKeyUsage, type KeyUsage } from '#domain/keys/list.ts';
import { NotFoundError } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Returns the key in the path. @throws NotFoundError also for a key of another organization. */
export async function getKey(visit: MemberVisit): Promise<KeyUsage> {
  const { database, now } = visit.console;
  const key = await findKeyUsage(database, visit.organizationId, visit.params.keyId ?? '', now());
  if (key === null) throw new NotFoundError();
  return key;
}
