import type { EntityManager } from '@mikro-orm/postgresql';
import { recordActivity } from './record.ts';
import { type ActivityEntry, type ActivityFilter, listActivity, type Place } from './search.ts';

/**
 * Lines fetched at a time: what a download of any length holds in memory, about 2 MB. The first
 * fetch is small, so that a download begins at once.
 */
const linesPerFetch = 2_000;
const linesOfFirstFetch = 100;

/**
 * Every line that fits, newest first, as many as its reader takes: each fetch is a short statement
 * of its own from where the last one ended, so no connection and no snapshot is held between them,
 * and one that is left early asks for nothing more. Lines written after it began are not among
 * them.
 */
export async function* eachActivityEntry(
  em: EntityManager,
  organizationId: string,
  filter: ActivityFilter,
): AsyncGenerator<ActivityEntry[]> {
  let from: Place | null = null;
  do {
    const page = await listActivity(
      em,
      organizationId,
      filter,
      from === null ? null : { place: from, direction: 'older' },
      from === null ? linesOfFirstFetch : linesPerFetch,
    );
    if (page.entries.length > 0) yield page.entries;
    from = page.older;
  } while (from !== null);
}

/**
 * Records that a person took lines out of the log; call it before the first of them leaves.
 * `detail` is the filter, as far as it was given.
 */
export async function recordDownload(
  em: EntityManager,
  input: { organizationId: string; personId: string; address: string | null; filter: ActivityFilter },
): Promise<void> {
  const { organizationId, personId, address, filter } = input;
  const given = Object.entries(filter).filter(([, value]) => value !== null);
  const line = { organizationId, personId, address, action: 'activity.download', detail: Object.fromEntries(given) };
  await em.fork().transactional((tx) => recordActivity(tx, line));
}
