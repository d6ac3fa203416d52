import { z } from 'zod';
import { recordAuditEntry } from '#domain/audit-log/record.ts';
import {
  type AuditEntry,
  type AuditLogFilter,
  listAuditEntries,
  type Position,
  type Reader,
  seesNoClients,
} from '#domain/audit-log/search.ts';
import type { Database, Queryable } from '#domain/db/database.ts';

/**
 * Entries per fetch: a download of any length has less than 1 MB in memory, and other requests of
 * the process wait for the entries of one fetch only. The first is small, so that a download starts
 * at once.
 */
const entriesPerFetch = 500;
const entriesOfFirstFetch = 100;

/**
 * Yields every entry that matches the filter, newest first, in batches. Each fetch is a statement
 * of its own that continues where the last one ended, so no connection or snapshot is held between
 * them, and a reader that stops early causes no further query. Entries written after the start are
 * not included.
 */
export async function* eachAuditEntry(
  db: Queryable,
  organizationId: string,
  filter: AuditLogFilter,
  reader: Reader = seesNoClients,
): AsyncGenerator<AuditEntry[]> {
  let from: Position | null = null;
  do {
    const page = await listAuditEntries(
      db,
      organizationId,
      filter,
      from === null ? null : { position: from, direction: 'older' },
      from === null ? entriesOfFirstFetch : entriesPerFetch,
      reader,
    );
    if (page.entries.length > 0) yield page.entries;
    from = page.older;
  } while (from !== null);
}

/**
 * Records that a person downloads the log, with the filter. A searched text, or an object that is no
 * id, may be a family's name, so it is recorded only that there was one. Called before the first
 * entry is sent.
 */
export async function recordDownload(
  database: Database,
  input: { organizationId: string; personId: string; address: string | null; filter: AuditLogFilter },
): Promise<void> {
  const { organizationId, filter, ...by } = input;
  const { text, objectId, ...others } = filter;
  const object = z.guid().safeParse(objectId).success ? { objectId } : { hasObject: objectId && true };
  const given = Object.entries({ ...others, ...object, hasText: text && true }).filter(([, value]) => value !== null);
  const detail = Object.fromEntries(given);
  await database.change((tx) => recordAuditEntry(tx, { organizationId, by, action: 'audit_log.download', detail }));
}
