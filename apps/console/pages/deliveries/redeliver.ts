import { z } from 'zod';
import { redeliverableDays } from '#domain/webhooks/limits.ts';
import {
  listRedeliveries,
  type RedeliveryRow,
  requestRedelivery,
  type Selection,
} from '#domain/webhooks/redeliveries.ts';
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
import { progressInWords, selectionInWords } from './redelivery-cells.ts';

const hourMs = 3_600_000;
/**
 * How far back failures are sent again, in hours; a minute is taken off the longest, which would be
 * too old when it arrives.
 */
const failedSince = [
  { value: '1', label: 'the last hour' },
  { value: '6', label: 'the last 6 hours' },
  { value: '24', label: 'the last 24 hours' },
  { value: '72', label: 'the last 3 days' },
  { value: '168', label: 'the last 7 days' },
  { value: String(redeliverableDays * 24), label: `the last ${redeliverableDays} days` },
] as const;
const perPage = 20;

const redeliverForm = z
  .object({
    what: z.enum(['failed', 'range'], { error: 'Choose what to send again.' }),
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
        context.addIssue({ code: 'custom', path: [path], message: 'Say when: a day and a time.' });
  });

/** Sending many again: all that failed lately, or a range of time; and how earlier ones went. */
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
  const longest = redeliverableDays * 24 * hourMs - 60_000;
  return { failedSince: new Date(now.getTime() - Math.min(Number(hours) * hourMs, longest)).toISOString() };
}

async function redeliverPage(visit: MemberVisit, state: FormState, before: string | null): Promise<Page> {
  const webhook = await getHead(visit);
  const found = await listRedeliveries(visit.console.em, { ...webhookRequest(visit), atMost: perPage + 1, before });
  const redeliveries = found.slice(0, perPage);
  const running = before === null ? redeliveries.find(({ finishedAt }) => finishedAt === null) : undefined;
  return page({
    title: 'Send many again',
    breadcrumbs: [['Deliveries', of(visit, '/deliveries')], ...breadcrumbsOf(visit, webhook)],
    body: html`
      ${temporalNotice(visit)}
      ${unable(visit, webhook.state, running) ?? drawForms(visit, state)}
      <section aria-labelledby="before"><h2 id="before">Earlier ones</h2>
        ${redeliveries.length === 0 ? html`<p>Nothing was sent again in this way yet.</p>` : redeliveriesTable(visit, redeliveries)}
        ${pager({
          newer: null,
          older: found.length > perPage ? (redeliveries.at(-1)?.id ?? null) : null,
          href: (cursor) => of(visit, `/redeliver?before=${cursor}`),
          ...(before === null ? {} : { firstHref: of(visit, '/redeliver') }),
        })}</section>`,
  });
}

/** Why nothing can be sent again now; null: it can. */
function unable(visit: MemberVisit, state: string, running: RedeliveryRow | undefined): Html | null {
  if (state === 'deleted') return notice('info', 'The webhook is deleted: nothing is sent to it any more.');
  if (state === 'parked')
    return notice(
      'warning',
      html`Nothing is sent while it is parked. <a href="${of(visit, '/resume')}">Resume it</a> first, which sends all that waits.`,
    );
  if (running !== undefined)
    return notice(
      'info',
      html`One is under way, and there is one at a time. <a href="${of(visit, `/redeliveries/${running.id}`)}">See how far it is</a>.`,
    );
  return null;
}

function drawForms(visit: MemberVisit, state: FormState): Html {
  const action = of(visit, '/redeliver');
  // What was typed, and what is wrong with it, belongs to the one of the two that was sent.
  const stateOf = (what: 'failed' | 'range') =>
    textOf(state, 'what') === what ? state : freshForm({ hours: '24', zone: '' });
  const [failed, range] = [stateOf('failed'), stateOf('range')];
  return html`
    <p>Each keeps its event id, so a receiver that knows repeats acts on none twice. They go out at a steady pace: events of the last ${redeliverableDays} days at most, and never what was cancelled.</p>
    <div class="two">
      <section aria-labelledby="failed"><h2 id="failed">What failed</h2>
        ${form(visit, {
          action,
          state: failed,
          button: 'Send what failed again',
          fields: html`${hiddenField('what', 'failed')}
            ${selectField(failed, {
              name: 'hours',
              label: 'Failed in',
              options: failedSince,
              hint: 'What was given up in that time, and what is still being tried after a failure.',
            })}`,
        })}</section>
      <section aria-labelledby="range"><h2 id="range">All of a time</h2>
        ${form(visit, {
          action,
          state: range,
          button: 'Send all of it again',
          fields: html`${hiddenField('what', 'range')}
            ${textField(range, { name: 'from', label: 'Happened from', type: 'datetime-local', hint: 'Also what arrived already.' })}
            ${textField(range, { name: 'until', label: 'Until', type: 'datetime-local' })}
            <input type="hidden" name="zone" value="${textOf(range, 'zone')}" data-zone>
            <p class="quiet">Times are in <span data-zone-name>${textOf(range, 'zone') || 'UTC'}</span>.</p>`,
        })}</section>
    </div>`;
}

function redeliveriesTable(visit: MemberVisit, redeliveries: readonly RedeliveryRow[]): Html {
  return table<RedeliveryRow>({
    caption: 'Earlier redeliveries',
    rows: redeliveries,
    columns: [
      {
        heading: 'What',
        main: true,
        cell: (one) => html`<a href="${of(visit, `/redeliveries/${one.id}`)}">${selectionInWords(one)}</a>`,
      },
      { heading: 'Asked for', cell: ({ requestedAt }) => time(requestedAt) },
      { heading: 'State', cell: redeliveryStatus },
      { heading: 'Sent again', cell: progressInWords },
      { heading: 'Ended', cell: ({ finishedAt }) => time(finishedAt) },
    ],
  });
}
