import { z } from 'zod';
import { results } from '#domain/audit-log/results.ts';
import type { AuditLogFilter, Position, Reader } from '#domain/audit-log/search.ts';
import { isIpRange } from '#domain/contract/ip-range.ts';
import { parseMoment } from '#domain/contract/moment.ts';
import { filterText, formatQueryName, timeRangeFields, timeRangeProblems } from '../../components/list-filter.ts';
import { parseDateTime } from '../../web/date-time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { matchText } from './match-text.ts';

/** The filters in the query of the log; empty: not set. Ids of people are any text. */
export const filterFields = {
  key: z.guid().catch(''),
  person: z.string().max(255).catch(''),
  action: filterText(/^[\w.]{1,100}$/),
  result: z.enum(['', ...results.map(formatQueryName)]).catch(''),
  q: z.string().trim().max(255).catch(''),
  object: z.string().trim().max(255).catch(''),
  address: z.string().trim().max(50).catch(''),
  ...timeRangeFields,
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/** Returns what the visitor may see in the log. */
export const getReader = (visit: MemberVisit): Reader => ({ maySeeClients: visit.may('org.clients.read') });

/** Returns the filter of a query. Invalid values are not applied. */
export async function readFilter(visit: MemberVisit, query: FilterQuery): Promise<AuditLogFilter> {
  const { key, person, action, result, q, object, address, from, until, zone } = query;
  return {
    keyId: key || null,
    personId: person || null,
    action: action || null,
    result: results.find((each) => formatQueryName(each) === result) ?? null,
    objectId: (z.guid().safeParse(object).success ? object.toLowerCase() : object) || null,
    address: isIpRange(address) ? address : null,
    text: q === '' ? null : await matchText(visit.console.database, visit.organizationId, q, getReader(visit)),
    from: parseDateTime(from, zone, 'from'),
    to: parseDateTime(until, zone, 'until'),
  };
}

/** Returns what is wrong with a filter, by field. */
export const filterProblems = (query: FilterQuery): Record<string, string> => ({
  ...timeRangeProblems(query),
  ...(query.address !== '' && !isIpRange(query.address)
    ? { address: 'Enter an IP address or a range such as 203.0.113.0/24. This filter was not applied.' }
    : {}),
});

/** A cursor in a link: its direction, and the time and id of an entry. */
const cursorForm = /^(older|newer)_(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_([0-9a-f-]{36})$/;

export const cursorField = z
  .string()
  .transform((text) => readCursor(text))
  .catch(null);

export interface Cursor {
  position: Position;
  direction: 'older' | 'newer';
}

function readCursor(text: string): Cursor | null {
  const [, direction, at = '', id = ''] = cursorForm.exec(text) ?? [];
  if ((direction !== 'older' && direction !== 'newer') || !z.guid().safeParse(id).success) return null;
  return parseMoment(at) !== null ? { position: { at, id }, direction } : null;
}

export const cursorText = (direction: Cursor['direction'], position: Position | null): string | null =>
  position === null ? null : `${direction}_${position.at}_${position.id}`;
