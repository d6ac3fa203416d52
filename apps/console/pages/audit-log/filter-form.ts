import { type KeyChoice, listKeyChoices, listPeopleChoices, type PersonChoice } from '#domain/audit-log/choices.ts';
import { results } from '#domain/audit-log/results.ts';
import type { Html } from '#runtime/pages/html.ts';
import { getActionTitle, knownActions } from '../../components/action-sentences.ts';
import { filterForm, formatQueryName } from '../../components/list-filter.ts';
import { truncate } from '../../components/text.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { type FilterQuery, filterProblems } from './filter.ts';

interface Option {
  value: string;
  label: string;
}

/** Renders the filter of the log, with the keys and people to choose from. */
export async function auditLogFilterForm(visit: MemberVisit, query: FilterQuery): Promise<Html> {
  const { database } = visit.console;
  const keys = await listKeyChoices(database, visit.organizationId, query.key || null);
  const people = await listPeopleChoices(database, visit.organizationId, query.person || null);
  return filterForm({
    action: visit.at('/audit-log'),
    query,
    problems: filterProblems(query),
    fields: [
      {
        name: 'q',
        label: 'Search',
        type: 'search',
        maxLength: 255,
        hint: 'A name, an action, an ID or an error code.',
      },
      { name: 'result', label: 'Result', options: resultOptions },
      { name: 'action', label: 'Event', options: actionOptions(query.action) },
      { name: 'key', label: 'API key', options: [any('Any key'), ...keys.map(keyOption)] },
      { name: 'object', label: 'Object ID', maxLength: 255, exact: true },
      { name: 'address', label: 'IP address or range', maxLength: 50, exact: true },
      { name: 'person', label: 'Person', options: [any('Anyone'), ...people.map(personOption)] },
    ],
  });
}

const any = (label: string): Option => ({ value: '', label });

const resultOptions: readonly Option[] = [
  any('Any'),
  ...results.map((label) => ({ value: formatQueryName(label), label })),
];

/** Returns the known actions and the one in the query, which may be unknown. */
function actionOptions(chosen: string): Option[] {
  const known = knownActions.map(({ action, title }) => ({ value: action, label: title }));
  const isKnown = chosen === '' || known.some(({ value }) => value === chosen);
  return [any('Any event'), ...known, ...(isKnown ? [] : [{ value: chosen, label: getActionTitle(chosen) }])];
}

const keyOption = ({ id, label, hint }: KeyChoice): Option => ({
  value: id,
  label: label === '' ? hint : `${truncate(label, 60)} (${hint})`,
});

const personOption = ({ personId, name }: PersonChoice): Option => ({ value: personId, label: truncate(name, 60) });
