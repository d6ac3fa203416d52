import { z } from 'zod';
import type { ActivityFilter, Place } from '#domain/activity/search.ts';
import { filterText, timeRangeFields } from '../../components/list-filter.ts';
import { isTimestamp, parseDateTime } from '../../web/date-time.ts';

/** The filters in the query of the log; empty: not set. */
export const filterFields = {
  key: z.uuid().catch(''),
  person: filterText(/^[\x21-\x7e]{1,128}$/),
  action: filterText(/^[\w.]{1,100}$/),
  outcome: z.enum(['answered', 'refused', 'action', '']).catch(''),
  ...timeRangeFields,
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/** Returns the filter that a query asks for. A time that is not valid is not applied. */
export function readFilter({ key, person, action, outcome, from, until, zone }: FilterQuery): ActivityFilter {
  return {
    keyId: key || null,
    personId: person || null,
    action: action || null,
    outcome: outcome || null,
    from: parseDateTime(from, zone),
    to: parseDateTime(until, zone),
  };
}

/** A page's start in a link: its direction, and the time and id of an entry. */
const cursorForm = /^(older|newer)_(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_([0-9a-f-]{36})$/;

export const cursorField = z
  .string()
  .transform((text) => readCursor(text))
  .catch(null);

export type Cursor = { place: Place; direction: 'older' | 'newer' };

function readCursor(text: string): Cursor | null {
  const [, direction, at = '', id = ''] = cursorForm.exec(text) ?? [];
  if ((direction !== 'older' && direction !== 'newer') || !z.uuid().safeParse(id).success) return null;
  return isTimestamp(at) ? { place: { at, id }, direction } : null;
}

export const cursorText = (direction: Cursor['direction'], place: Place | null): string | null =>
  place === null ? null : `${direction}_${place.at}_${place.id}`;
