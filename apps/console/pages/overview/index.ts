import { html } from '#runtime/pages/html.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { attention } from './attention.ts';
import { charts } from './charts.ts';
import { counts } from './counts.ts';
import { firstSteps } from './first-steps.ts';
import { getOverview } from './query.ts';
import { recentFailures } from './recent-failures.ts';
import { overviewSearch, searchRoutes } from './search.ts';

/** Shows the health of an organization: alerts, traffic, failures, first steps, counts. */
export const routes = [
  member.view({
    name: 'showOverview',
    path: '',
    async show(visit) {
      const { database } = visit.console;
      const overview = await getOverview(database, visit.organizationId);
      return page({
        title: 'Overview',
        body: html`${overviewSearch(visit)}${await attention(visit)}${firstSteps(visit, overview)}${await charts(visit)}
          ${await recentFailures(visit)}${counts(visit, overview)}`,
      });
    },
  }),
  ...searchRoutes,
];
