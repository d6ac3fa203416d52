import { z } from 'zod';
import { attributes, type Html, html, nothing } from '#runtime/pages/html.ts';
import { dateTimeProblem, findTimeZone, timeZoneField } from '../web/date-time.ts';
import { type FormState, freshForm } from '../web/form.ts';
import { selectField, textField } from './form.ts';

/** Query text of a known form; anything else counts as empty. */
export const filterText = (form: RegExp) => z.string().regex(form).catch('');

/** Returns a status or result as the query of an address names it: `invalid_request`. */
export const formatQueryName = (label: string): string => label.toLowerCase().replaceAll(' ', '_');

/** The time range of a list's query. `zone` is the time zone of `from` and `until`. */
export const timeRangeFields = {
  from: z.string().max(40).catch(''),
  until: z.string().max(40).catch(''),
  zone: timeZoneField,
};

type TimeRange = { from: string; until: string; zone: string };

/** Returns what is wrong with the times of a filter, by field. */
export function timeRangeProblems({ from, until, zone }: TimeRange): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const [name, text] of Object.entries({ from, until })) {
    const problem = text === '' ? null : dateTimeProblem(text, zone);
    if (problem !== null) problems[name] = `${problem} This filter was not applied.`;
  }
  return problems;
}

/**
 * Renders the zone of a form's times, and its name. The script fills in the viewer's zone while no
 * time is set: a time that is shown has the zone in which it was read.
 */
export function renderTimeZone({ from, until, zone }: TimeRange): Html {
  const isSet = from !== '' || until !== '';
  const name = isSet && zone !== '' && findTimeZone(zone) !== null ? zone : 'UTC';
  return html`<input type="hidden" name="zone" value="${isSet ? name : ''}" data-zone>
    <span class="quiet">Times are in <span data-zone-name>${name}</span>.</span>`;
}

/** Returns whether any filter is set. A zone alone filters nothing. */
export const isFiltered = ({ zone: _, ...set }: Record<string, string>): boolean =>
  Object.values(set).some((value) => value !== '');

/** Returns the query string of a filter, with `more` added; an empty string when none is set. */
export function filterQuery(
  filter: TimeRange & Record<string, string>,
  more: Record<string, string | null> = {},
): string {
  const { zone, ...set } = filter;
  return queryString({ ...set, ...(set.from || set.until ? { zone } : {}), ...more });
}

/** Returns the query string of the values that are set; an empty string when none is. */
export function queryString(values: Record<string, string | null>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}

/** A control of a filter: a choice with `options`, whose first is "any", or a text. */
export interface FilterField {
  name: string;
  label: string;
  options?: readonly { value: string; label: string }[];
  type?: 'search';
  maxLength?: number;
  hint?: string;
  exact?: boolean;
}

/**
 * Renders the filter of a list: its controls, and what is set as chips that remove it. It is a GET
 * form, so that the address keeps the filter. Controls are open on a wide screen. On a narrow one
 * they are folded while none has a problem, and the chips show what is set.
 */
export function filterForm(parts: {
  action: string;
  query: TimeRange & Record<string, string>;
  /** The controls before the time range. */
  fields: readonly FilterField[];
  /** Problems of further fields, beside those of the time range. */
  problems?: Record<string, string>;
}): Html {
  const { action, query, fields, problems = {} } = parts;
  const state = { ...freshForm({ ...query }), problems: { ...timeRangeProblems(query), ...problems } };
  const timeField = (name: 'from' | 'until', label: string) =>
    textField(state, { name, label, type: 'datetime-local', required: false });
  return html`<details class="filter"${attributes({ open: Object.keys(state.problems).length > 0 })}>
    <summary>Filter</summary>
    <form method="get" action="${action}">
      <div class="filter-fields">${fields.map((field) => renderField(state, field))}
        ${timeField('from', 'From')}${timeField('until', 'To')}</div>
      <p class="actions"><button type="submit" class="secondary">Apply</button>
        ${renderTimeZone(query)}</p>
    </form>
  </details>
  ${activeFilters(action, query, fields)}`;
}

const renderField = (state: FormState, { options, ...field }: FilterField): Html =>
  options === undefined
    ? textField(state, { ...field, required: false })
    : selectField(state, { ...field, required: false, options });

/** Renders what is set as chips, each a link to the list without it. */
function activeFilters(
  action: string,
  query: TimeRange & Record<string, string>,
  fields: readonly FilterField[],
): Html {
  const times = [
    { name: 'from', label: 'From' },
    { name: 'until', label: 'To' },
  ];
  const active = [...fields, ...times].filter(({ name }) => query[name]);
  if (active.length === 0) return nothing;
  const chip = ({ name, label, options }: FilterField) => {
    const value = query[name] ?? '';
    const text = options?.find((option) => option.value === value)?.label ?? value.replace('T', ' ');
    return html`<li><a class="chip" href="${action + filterQuery({ ...query, [name]: '' })}">${label}:
      <bdi>${text}</bdi> <span aria-hidden="true">×</span><span class="visually-hidden"> Remove filter</span></a></li>`;
  };
  return html`<ul class="chips active-filters" aria-label="Active filters">${active.map(chip)}
    <li><a href="${action}">Clear all</a></li></ul>`;
}
