import { z } from 'zod';
import type { ActivityFilter, Place } from '#domain/activity/search.ts';
import { dateTimePattern, isTimestamp, parseDateTime, timeZonePattern } from '../../web/date-time.ts';

/** A text of the query, or nothing when it has another form. */
const given = (form: RegExp) => z.string().regex(form).catch('');

/**
 * What the address of the log may ask for; empty: not asked for. `zone` is the time zone in which
 * `from` and `until` are meant.
 */
export const filterFields = {
  key: z.uuid().catch(''),
  person: given(/^[\x21-\x7e]{1,128}$/),
  action: given(/^[\w.]{1,100}$/),
  outcome: z.enum(['answered', 'refused', 'deed', '']).catch(''),
  from: given(dateTimePattern),
  until: given(dateTimePattern),
  zone: given(timeZonePattern),
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/**
 * The query as the log is searched. Times that do not exist are left out, an unknown zone is UTC.
 */
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

/** Whether anything is asked for. */
export const isFiltered = ({ zone: _, ...asked }: FilterQuery): boolean =>
  Object.values(asked).some((value) => value !== '');

/**
 * The query of a link that asks for the same, with `more` added; nothing when there is nothing to
 * say.
 */
export function queryOf(filter: FilterQuery, more: Record<string, string> = {}): string {
  const { zone, ...asked } = filter;
  const given = Object.entries({ ...asked, ...(asked.from || asked.until ? { zone } : {}), ...more });
  const query = new URLSearchParams(given.filter(([, value]) => value !== '')).toString();
  return query === '' ? '' : `?${query}`;
}

/** Where a page begins, as it stands in a link: which way, the time, the line. */
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
