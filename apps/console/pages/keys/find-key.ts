import { findKeyUsage, type KeyUsage } from '#domain/keys/usage.ts';
import { NotFound } from '../../web/answer.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** The key that the path names. @throws NotFound also for another organization's. */
export async function getKey(visit: MemberVisit): Promise<KeyUsage> {
  const { pool, now } = visit.console;
  const key = await findKeyUsage(pool, visit.organization.organizationId, visit.params.keyId ?? '', now());
  if (key === null) throw new NotFound();
  return key;
}
