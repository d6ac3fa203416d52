import { z } from 'zod';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { barChart } from '../../components/bar-chart.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { queryString } from '../../components/list-filter.ts';
import { reads } from '../../components/reads.ts';
import { table } from '../../components/table.ts';
import { tabs } from '../../components/tabs.ts';
import { displayName } from '../../components/text.ts';
import { relativeTime, time, utcDay } from '../../components/time.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getUsage, type Usage, type UsageRow, type UsageSpan, usageSpans } from './query.ts';

const spans = Object.keys(usageSpans) as [UsageSpan, ...UsageSpan[]];

/** Shows the calls of an organization's keys: by key and operation, error responses and addresses. */
export const routes = [
  member.view({
    name: 'showUsage',
    path: '/usage',
    permission: 'org.activity.read',
    query: z.object({ span: z.enum(spans).catch('24h') }),
    async show(visit, { span }) {
      const { database, now } = visit.console;
      const { usage, periods } = await getUsage(database, visit.organizationId, span, now());
      const ranges = spans.map((one) => ({
        label: usageSpans[one].label,
        href: visit.at(`/usage?span=${one}`),
        isHere: one === span,
      }));
      return page({
        title: 'Usage',
        body: html`
          ${tabs('Period', ranges)}
          ${usage.rows.length === 0 ? noCalls(visit) : callSections(visit, usage, periods, span)}`,
      });
    },
  }),
];

const noCalls = (visit: MemberVisit): Html =>
  emptyState({
    title: 'No calls in this period',
    body: 'Calls of your API keys appear here within seconds.',
    action: visit.may('org.keys.manage') ? linkButton(visit.at('/keys'), 'View API keys', 'secondary') : null,
  });

function callSections(visit: MemberVisit, usage: Usage, periods: readonly string[], span: UsageSpan): Html {
  const { countedTo, rejections, addresses } = usage;
  return html`
    <p class="quiet">Includes calls until ${time(countedTo)}.</p>
    ${callsChart(usage, periods, span)}
    <section aria-labelledby="keys"><h2 id="keys">By key and operation</h2>${keyTable(visit, usage.rows)}</section>
    ${
      rejections.length === 0
        ? nothing
        : html`<section aria-labelledby="rejections"><h2 id="rejections">Unsuccessful calls</h2>${table({
            caption: 'Unsuccessful calls by code',
            rows: rejections,
            columns: [
              { heading: 'Code', main: true, cell: ({ code }) => html`<code>${code}</code>` },
              { heading: 'Status', cell: ({ status }) => String(status) },
              { heading: 'Calls', numeric: true, cell: ({ calls }) => calls.toLocaleString('en') },
            ],
          })}</section>`
    }
    ${
      addresses.length === 0
        ? nothing
        : html`<section aria-labelledby="addresses"><h2 id="addresses">Recent IP addresses</h2>${table({
            caption: 'IP addresses of the newest calls',
            rows: addresses,
            columns: [
              {
                heading: 'IP address',
                main: true,
                cell: ({ address }) =>
                  html`<a href="${visit.at(`/audit-log${queryString({ address })}`)}"><code>${address}</code></a>`,
              },
              { heading: 'Last call', cell: ({ lastAt }) => relativeTime(lastAt) },
              { heading: 'Calls', numeric: true, cell: ({ calls }) => calls.toLocaleString('en') },
            ],
          })}</section>`
    }`;
}

function callsChart({ bars }: Usage, periods: readonly string[], span: UsageSpan): Html {
  const { unit } = usageSpans[span];
  const isHour = unit === 'hour';
  const found = new Map(bars.map((bar) => [bar.from, bar]));
  return barChart({
    id: 'calls',
    title: `API calls per ${unit}`,
    period: isHour ? 'Hour from' : 'Day',
    series: [
      { key: 'answered', label: 'Successful', tone: 'good' },
      { key: 'rejected', label: 'Unsuccessful', tone: 'bad' },
    ],
    bars: periods.map((from) => ({
      answered: found.get(from)?.answered ?? 0,
      rejected: found.get(from)?.rejected ?? 0,
      label: isHour ? time(from) : utcDay(from),
    })),
  });
}

const keyTable = (visit: MemberVisit, rows: readonly UsageRow[]): Html =>
  table<UsageRow>({
    caption: 'Calls by key and operation',
    rows,
    columns: [
      { heading: 'API key', main: true, cell: (row) => keyCell(visit, row) },
      {
        heading: 'Operation',
        cell: ({ keyId, action }) =>
          html`<a href="${visit.at(`/audit-log?key=${keyId}&action=${action}`)}">${operationName(action)}</a>`,
      },
      { heading: 'Successful', numeric: true, cell: ({ answered }) => answered.toLocaleString('en') },
      { heading: 'Unsuccessful', numeric: true, cell: ({ rejected }) => rejected.toLocaleString('en') },
    ],
  });

function keyCell(visit: MemberVisit, { keyId, keyLabel, keyHint }: UsageRow): Html {
  const name = html`${keyLabel === '' ? nothing : html`${displayName(keyLabel)} `}<code class="hint">${keyHint}</code>`;
  return visit.may('org.keys.manage') ? html`<a href="${visit.at(`/keys/${keyId}`)}">${name}</a>` : name;
}

/** Returns the operation of an action of the audit log. Other requests have the name of their outcome. */
function operationName(action: string): Html {
  const operation = action.replace(/^api\./, '');
  if (Object.hasOwn(reads, operation)) return html`<code>${operation}</code>`;
  return html`${otherRequests[operation] ?? operation}`;
}

const otherRequests: Record<string, string> = {
  none: 'Unknown endpoint',
  console: 'Console',
  rate_limited: 'Rate limit exceeded',
};
