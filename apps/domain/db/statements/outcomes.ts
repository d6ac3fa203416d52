import { outcomesMinimumFamilies, outcomesWindowDays } from '../../contract/limits.ts';

const metric = (count: string, of: string, families: string) => /* sql */ `
  case when o.families >= ${outcomesMinimumFamilies}
    and o.${families} >= ${outcomesMinimumFamilies} then json_build_object(
    'count', o.${count}, 'of', o.${of},
    'percent', case when o.${of} > 0 then round(100.0 * o.${count} / o.${of}, 1) end
  ) end`;

/**
 * De-identified outcomes of an organization over its window, one JSON object. `asked.organization_id` is the
 * organization.
 *
 * `api.outcomes` sums with its owner's rights and withholds every sum over fewer than five
 * families, so that no statement of the read role can see one family's counts. The conditions here
 * only decide between an object and null.
 */
export const outcomesSql = /* sql */ `
  select json_build_object(
    'windowDays', ${outcomesWindowDays},
    'families', o.families,
    'minimumFamilies', ${outcomesMinimumFamilies},
    'shown', o.families >= ${outcomesMinimumFamilies},
    'calmMessages', ${metric('calm_messages', 'messages', 'messages_families')},
    'exchangesOnTime', ${metric('exchanges_on_time', 'exchanges', 'exchanges_families')},
    'expensesAnsweredIn14Days', ${metric('expenses_answered', 'expenses_due', 'expenses_families')}
  )
  from api.outcomes(asked.organization_id) o`;
