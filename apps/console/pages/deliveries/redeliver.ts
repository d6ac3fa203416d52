import { z } from 'zod';
import { redeliverableDays } from '#domain/webhooks/limits.ts';
import {
  listRedeliveries,
  type RedeliveryRow,
  requestRedelivery,
  type Selection,
} from '#domain/webhooks/redeliveries.ts';
import type { WebhookHead } from '#domain/webhooks/summary.ts';
import { form, hiddenField, selectField, textField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { redeliveryStatus } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { parseDateTime } from '../../web/date-time.ts';
import { type FormState, freshForm, textOf } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { temporalNotice } from '../webhooks/temporal.ts';
import { describeProgress, describeSelection } from './redelivery-cells.ts';

const hourMs = 3_600_000;
/** Choices of how far back failed deliveries are redelivered, in hours. */
const failedSince = [
  { value: '1', label: 'Last hour' },
  { value: '6', label: 'Last 6 hours' },
  { value: '24', label: 'Last 24 hours' },
  { value: '72', label: 'Last 3 days' },
  { value: '168', label: 'Last 7 days' },
  { value: String(redeliverableDays * 24), label: `Last ${redeliverableDays} days` },
] as const;
const perPage = 20;

const redeliverForm = z
  .object({
    what: z.enum(['failed', 'range'], { error: 'Choose which events to redeliver.' }),
    hours: z.enum(failedSince.map(({ value }) => value) as [string, ...string[]]).catch('24'),
    from: z.string().max(30).default(''),
    until: z.string().max(30).default(''),
    zone: z.string().max(64).default(''),
  })
  .superRefine(({ what, from, until, zone }, context) => {
    if (what !== 'range') return;
    for (const [path, text] of [
      ['from', from],
      ['until', until],
    ] as const)
      if (parseDateTime(text, zone) === null)
        context.addIssue({ code: 'custom', path: [path], message: 'Enter a date and a time.' });
  });

/** Redelivers failed events or a time range, and lists past redeliveries. */
export const redeliverRoutes = [
  member.view({
    name: 'showRedeliver',
    path: '/webhooks/:webhookId/redeliver',
    permission: 'org.webhooks.manage',
    query: z.object({ before: z.uuid().nullable().catch(null) }),
    show: (visit, { before }) => redeliverPage(visit, freshForm({ what: 'failed', hours: '24' }), before),
  }),

  member.action({
    name: 'redeliver',
    path: '/webhooks/:webhookId/redeliver',
    permission: 'org.webhooks.manage',
    once: true,
    form: redeliverForm,
    async act(visit, fields) {
      const selection = selectionOf(fields, visit.console.now());
      const { id } = await requestRedelivery(visit.console.em, { ...webhookRequest(visit), selection });
      return redirect(of(visit, `/redeliveries/${id}`));
    },
    redraw: (visit, state) => redeliverPage(visit, state, null),
  }),
];

function selectionOf({ what, hours, from, until, zone }: z.output<typeof redeliverForm>, now: Date): Selection {
  const [begins, ends] = [parseDateTime(from, zone), parseDateTime(until, zone)];
  if (what === 'range' && begins !== null && ends !== null)
    return { from: begins.toISOString(), to: ends.toISOString() };
  // The longest choice loses a minute: at the exact limit it would be too old when it is handled.
  const longest = redeliverableDays * 24 * hourMs - 60_000;
  return { failedSince: new Date(now.getTime() - Math.min(Number(hours) * hourMs, longest)).toISOString() };
}

async function redeliverPage(visit: MemberVisit, state: FormState, before: string | null): Promise<Page> {
  const webhook = await getHead(visit);
  const found = await listRedeliveries(visit.console.em, { ...webhookRequest(visit), atMost: perPage + 1, before });
  const redeliveries = found.slice(0, perPage);
  const running = before === null ? redeliveries.find(({ finishedAt }) => finishedAt === null) : undefined;
  return page({
    title: 'Redeliver events',
    breadcrumbs: [['Deliveries', of(visit, '/deliveries')], ...breadcrumbsOf(visit, webhook)],
    body: html`
      ${temporalNotice(visit)}
      ${obstacle(visit, webhook, running) ?? drawForms(visit, state)}
      <section aria-labelledby="before"><h2 id="before">Past redeliveries</h2>
        ${redeliveries.length === 0 ? html`<p>No redeliveries yet.</p>` : redeliveriesTable(visit, redeliveries)}
        ${pager({
          newer: null,
          older: found.length > perPage ? (redeliveries.at(-1)?.id ?? null) : null,
          href: (cursor) => of(visit, `/redeliver?before=${cursor}`),
          ...(before === null ? {} : { firstHref: of(visit, '/redeliver') }),
        })}</section>`,
  });
}

/** Returns why a redelivery cannot start now; null when it can. */
function obstacle(
  visit: MemberVisit,
  { state, parkedReason }: Pick<WebhookHead, 'state' | 'parkedReason'>,
  running: RedeliveryRow | undefined,
): Html | null {
  if (state === 'deleted') return notice('info', 'This webhook is deleted. No events are sent to it.');
  if (state === 'parked')
    return notice(
      'warning',
      html`This webhook is ${parkedReason === 'paused' ? 'paused' : 'suspended'}. <a href="${of(visit, '/resume')}">Resume webhook</a> first, which sends held deliveries.`,
    );
  if (running !== undefined)
    return notice(
      'info',
      html`A redelivery is in progress. Only one can run at a time. <a href="${of(visit, `/redeliveries/${running.id}`)}">View redelivery</a>`,
    );
  return null;
}

function drawForms(visit: MemberVisit, state: FormState): Html {
  const action = of(visit, '/redeliver');
  // Typed values and problems belong to the form that was sent.
  const stateOf = (what: 'failed' | 'range') =>
    textOf(state, 'what') === what ? state : freshForm({ hours: '24', zone: '' });
  const [failed, range] = [stateOf('failed'), stateOf('range')];
  return html`
    <p>Events keep their ids, so a receiver that ignores duplicates processes each event once. You can redeliver events of the last ${redeliverableDays} days. Cancelled deliveries are not sent.</p>
    <div class="two">
      <section aria-labelledby="failed"><h2 id="failed">Failed deliveries</h2>
        ${form(visit, {
          action,
          state: failed,
          button: 'Redeliver failed events',
          fields: html`${hiddenField('what', 'failed')}
            ${selectField(failed, {
              name: 'hours',
              label: 'Failed in',
              options: failedSince,
              hint: 'Includes deliveries that are being retried.',
            })}`,
        })}</section>
      <section aria-labelledby="range"><h2 id="range">Time range</h2>
        ${form(visit, {
          action,
          state: range,
          button: 'Redeliver time range',
          fields: html`${hiddenField('what', 'range')}
            ${textField(range, { name: 'from', label: 'From', type: 'datetime-local', hint: 'Includes events that were delivered.' })}
            ${textField(range, { name: 'until', label: 'To', type: 'datetime-local' })}
            <input type="hidden" name="zone" value="${textOf(range, 'zone')}" data-zone>
            <p class="quiet">Times are in <span data-zone-name>${textOf(range, 'zone') || 'UTC'}</span>.</p>`,
        })}</section>
    </div>`;
}

function redeliveriesTable(visit: MemberVisit, redeliveries: readonly RedeliveryRow[]): Html {
  return table<RedeliveryRow>({
    caption: 'Past redeliveries',
    rows: redeliveries,
    columns: [
      {
        heading: 'Events',
        main: true,
        cell: (one) => html`<a href="${of(visit, `/redeliveries/${one.id}`)}">${describeSelection(one)}</a>`,
      },
      { heading: 'Requested', cell: ({ requestedAt }) => time(requestedAt) },
      { heading: 'Status', cell: redeliveryStatus },
      { heading: 'Redelivered', cell: describeProgress },
      { heading: 'Finished', cell: ({ finishedAt }) => time(finishedAt) },
    ],
  });
}
