import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

/** What was erased in one organization, without a name or an id of the family. */
export interface ErasureCertificate {
  erasureId: string;
  organizationId: string;
  /** SHA-256 of the 16 bytes of the family's id, hexadecimal. */
  familyDigest: string;
  erasedAt: string;
  erasedBy: 'platform' | 'orgctl' | 'restore';
  reference: string;
  counts: Record<string, number>;
  /** Where people wrote the name, when it was erased: places and ids. */
  mentions: { place: string; id: string }[];
  /** When no response of a receiver could follow any more; null before. */
  completedAt: string | null;
}

/**
 * Erases a family in every organization of the region. Repeated, it changes nothing and returns the
 * same certificates.
 *
 * @throws a `pg` error with the constraint `no_such_family` or `argument_invalid` (the reference).
 */
export async function eraseFamily(
  database: Database,
  { familyId, reference }: { familyId: string; reference: string },
): Promise<ErasureCertificate[]> {
  return database.change(async (tx) => {
    const [row] = await tx.query(sql<{ certificates: ErasureCertificate[] }>`
      select platform.erase(${familyId}::uuid, ${reference}, 'orgctl') as certificates`);
    return row?.certificates ?? [];
  });
}

/** Returns the certificate of an erasure, or null. */
export async function findErasure(database: Database, erasureId: string): Promise<ErasureCertificate | null> {
  const [row] = await database.query(sql<{ certificate: ErasureCertificate }>`
    select erasure_certificate(e) as certificate from erasure e where e.id = ${erasureId}::uuid`);
  return row?.certificate ?? null;
}

/** What a restored backup needs of a certificate. */
export type ErasedFamily = Pick<ErasureCertificate, 'familyDigest' | 'reference'>;

/**
 * Erases families again that a restored backup has, and rejects the ids of the others from now on.
 * Returns the certificates of what was erased.
 */
export async function eraseAgain(database: Database, erased: readonly ErasedFamily[]): Promise<ErasureCertificate[]> {
  return database.change(async (tx) => {
    const [row] = await tx.query(sql<{ certificates: ErasureCertificate[] }>`
      select erase_again(${JSON.stringify(erased)}::jsonb) as certificates`);
    return row?.certificates ?? [];
  });
}

/** Erases responses that came after an erasure, and completes erasures after which none can come. */
export const repeatErasuresSql = /* sql */ `select repeat_erasures()`;

/** Lists `{certificate}` of erasures to log: each when it is new, and when it is completed. */
export const listErasuresToLogSql = /* sql */ `select l.certificate from list_erasures_to_log() l`;

/** Records that the certificates `$1` (a JSON array) were logged. */
export const recordErasuresLoggedSql = /* sql */ `select record_erasures_logged($1::jsonb)`;

/** One row: the share of the platform's limit of erasures that it used in 24 hours, from 0. */
export const erasureLimitSql = /* sql */ `select erasure_limit_used() as used`;
