import { type CallHour, listCallHours } from '#domain/audit-log/calls.ts';
import { sumCounts } from '#domain/webhooks/health.ts';
import { listOrganizationHealth } from '#domain/webhooks/organization-health.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { barChart, type ChartSeries } from '../../components/bar-chart.ts';
import { healthPlot } from '../../components/health-plot.ts';
import { time } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';

const hours = 24;

/** Renders the deliveries and API calls of the last 24 hours that the member may see. */
export async function charts(visit: MemberVisit): Promise<Html> {
  const deliveries = await deliveriesChart(visit);
  const calls = await callsChart(visit);
  return deliveries === null && calls === null ? nothing : html`<div class="two">${deliveries}${calls}</div>`;
}

async function deliveriesChart(visit: MemberVisit): Promise<Html | null> {
  if (!visit.may('org.webhooks.manage')) return null;
  const { database, now } = visit.console;
  const buckets = await listOrganizationHealth(database, visit.request, now());
  const isEmpty = buckets.every((bucket) => sumCounts(bucket) === 0);
  return html`<section aria-labelledby="deliveries"><h2 id="deliveries">Deliveries, last ${hours} hours</h2>
    ${isEmpty ? html`<p class="quiet">No events in this time range.</p>` : healthPlot(buckets, '24h')}</section>`;
}

const callSeries: readonly ChartSeries<'succeeded' | 'rejected' | 'limited'>[] = [
  { key: 'succeeded', label: 'Successful', tone: 'good' },
  { key: 'rejected', label: 'Unsuccessful', tone: 'bad' },
  { key: 'limited', label: 'Rate limited', tone: 'late' },
];

async function callsChart(visit: MemberVisit): Promise<Html | null> {
  if (!visit.may('org.keys.manage')) return null;
  const { database, now } = visit.console;
  const all = await listCallHours(database, visit.organizationId, hours, now());
  const isEmpty = all.every(({ succeeded, rejected, limited }) => succeeded + rejected + limited === 0);
  return html`<section aria-labelledby="calls"><h2 id="calls">API calls, last ${hours} hours</h2>
    ${isEmpty ? html`<p class="quiet">No calls in this time range.</p>` : callsPlot(all)}</section>`;
}

const callsPlot = (all: readonly CallHour[]): Html =>
  barChart({
    id: 'calls-chart',
    title: 'API calls per hour, by result',
    period: 'Hour from',
    series: callSeries,
    bars: all.map((hour) => ({ ...hour, label: time(hour.from) })),
    note: null,
  });
