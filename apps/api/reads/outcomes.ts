import { outcomesMinimumFamilies, outcomesWindowDays } from '#domain/contract/limits.ts';

const metric = (count: string, of: string, families: string) => /* sql */ `
  case when o.families >= ${outcomesMinimumFamilies} and o.${families} >= ${outcomesMinimumFamilies} then
    (select row_to_json(m) from (
      select o.${count} as count, o.${of} as "of",
        case when o.${of} > 0 then round(100.0 * o.${count} / o.${of}, 1) end as percent
    ) m) end`;

/**
 * De-identified outcomes of `request.organization_id` over its window, one JSON object.
 *
 * `api.outcomes` sums with its owner's rights and withholds every sum over fewer than five
 * families, so that no statement of the read role can see one family's counts. The conditions here
 * only decide between an object and null.
 */
export const outcomesSql = /* sql */ `
  select row_to_json(r) from (
    select ${outcomesWindowDays} as "windowDays",
      o.families,
      ${outcomesMinimumFamilies} as "minimumFamilies",
      o.families >= ${outcomesMinimumFamilies} as shown,
      ${metric('calm_messages', 'messages', 'messages_families')} as "calmMessages",
      ${metric('exchanges_on_time', 'exchanges', 'exchanges_families')} as "exchangesOnTime",
      ${metric('expenses_answered', 'expenses_due', 'expenses_families')} as "expensesAnsweredIn14Days"
    from api.outcomes(request.organization_id) o
  ) r`;
