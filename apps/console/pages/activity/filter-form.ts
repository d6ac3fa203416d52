import { knownActions } from '#domain/activity/sentences.ts';
import {
  type KeyChoice,
  listKeyChoices,
  listPeopleChoices,
  type PersonChoice,
} from '#domain/db/statements/activity-choices.ts';
import { truncate } from '../../components/display-name.ts';
import { selectField, textField } from '../../components/form.ts';
import { freshForm } from '../../web/form.ts';
import { attributes, type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { type FilterQuery, isFiltered } from './filter.ts';

interface Option {
  value: string;
  label: string;
}

/**
 * The filter, folded away while nothing is asked for. A GET form: what is asked for stands in the
 * address, to keep and to pass on.
 */
export async function filterForm(visit: MemberVisit, query: FilterQuery): Promise<Html> {
  const { pool } = visit.console;
  const { organizationId } = visit.organization;
  const [keys, people] = await Promise.all([
    listKeyChoices(pool, organizationId, query.key || null),
    listPeopleChoices(pool, organizationId, query.person || null),
  ]);
  const state = freshForm({ ...query });
  const optional = { required: false };
  return html`<details class="filter"${attributes({ open: isFiltered(query) })}>
    <summary role="button" class="secondary outline">Filter</summary>
    <form method="get" action="${visit.at('/activity')}">
      <div class="filter-fields">
        ${selectField(state, { ...optional, name: 'outcome', label: 'Result', options: outcomes })}
        ${selectField(state, { ...optional, name: 'action', label: 'What', options: actionOptions(query.action) })}
        ${selectField(state, { ...optional, name: 'key', label: 'API key', options: [any('Any key'), ...keys.map(keyOption)] })}
        ${selectField(state, { ...optional, name: 'person', label: 'Person', options: [any('Anybody'), ...people.map(personOption)] })}
        ${textField(state, { ...optional, name: 'from', label: 'From', type: 'datetime-local' })}
        ${textField(state, { ...optional, name: 'until', label: 'Until', type: 'datetime-local' })}
      </div>
      <input type="hidden" name="zone" value="${query.zone}" data-zone>
      <p class="actions"><button type="submit">Show</button>${isFiltered(query) ? html`<a href="${visit.at('/activity')}">Show everything</a>` : nothing}
        <span class="quiet">Times are in <span data-zone-name>${query.zone || 'UTC'}</span>.</span></p>
    </form>
  </details>`;
}

const any = (label: string): Option => ({ value: '', label });

const outcomes: readonly Option[] = [
  any('Any'),
  { value: 'answered', label: 'Reads that were answered' },
  { value: 'refused', label: 'Reads that were refused' },
  { value: 'deed', label: 'What people and the system did' },
];

/** All that is known, and what the address asks for. */
function actionOptions(asked: string): Option[] {
  const known = knownActions.map(({ action, title }) => ({ value: action, label: title }));
  const isKnown = asked === '' || known.some(({ value }) => value === asked);
  return [any('Anything'), ...known, ...(isKnown ? [] : [{ value: asked, label: asked }])];
}

const keyOption = ({ id, label, hint }: KeyChoice): Option => ({
  value: id,
  label: label === '' ? hint : `${truncate(label, 60)} (${hint})`,
});

const personOption = ({ personId, name }: PersonChoice): Option => ({ value: personId, label: truncate(name, 60) });
