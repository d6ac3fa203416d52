import { z } from 'zod';
import { countRedelivery, requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import { copyableUrl } from '../../components/copy.ts';
import { emptyState } from '../../components/empty-state.ts';
import { form, hiddenField } from '../../components/form.ts';
import { time } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, problemsOf, textOf } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import { refusalOf } from '../../web/refusals.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { breadcrumbsOf, getHead, nameOf, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { redeliverPage } from './redeliver.ts';
import { failedSince, type RedeliverFields, redeliverForm, selectionOf } from './redeliver-form.ts';
import { eventCount } from './redelivery-cells.ts';

/** Any query: `redeliverForm` judges it, so that problems are shown at their fields. */
const anyFields = z.object({
  what: z.string().catch(''),
  hours: z.string().catch(''),
  from: z.string().catch(''),
  until: z.string().catch(''),
  zone: z.string().catch(''),
});

/** Shows how many events a redelivery sends, and starts it when that is confirmed. */
export const redeliverReviewRoutes = [
  member.view({
    name: 'reviewRedelivery',
    path: '/webhooks/:webhookId/redeliver/review',
    permission: 'org.webhooks.manage',
    query: anyFields,
    show: (visit, values) => reviewPage(visit, freshForm(values)),
  }),

  member.action({
    name: 'redeliver',
    path: '/webhooks/:webhookId/redeliver/review',
    permission: 'org.webhooks.manage',
    once: true,
    form: redeliverForm,
    async act(visit, fields) {
      const selection = selectionOf(fields, visit.console.now());
      const { id } = await requestRedelivery(visit.console.em, { ...webhookRequest(visit), selection });
      return redirect(of(visit, `/redeliveries/${id}`));
    },
    redraw: reviewPage,
  }),
];

async function reviewPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const read = redeliverForm.safeParse(state.values);
  if (!read.success) return redeliverPage(visit, { ...state, ...problemsOf(read.error) });
  try {
    const { events, isCapped } = await countEvents(visit, read.data);
    return await confirmPage(visit, state, read.data, events, isCapped);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === null || refusal.isNotFound) throw error;
    return redeliverPage(visit, { ...state, problem: refusal.message });
  }
}

async function countEvents(visit: MemberVisit, fields: RedeliverFields) {
  const selection = selectionOf(fields, visit.console.now());
  return countRedelivery(visit.console.em, { ...webhookRequest(visit), selection });
}

async function confirmPage(
  visit: MemberVisit,
  state: FormState,
  fields: RedeliverFields,
  events: number,
  isCapped: boolean,
): Promise<Page> {
  const webhook = await getHead(visit);
  const count = isCapped ? `at least ${eventCount(events)}` : eventCount(events);
  const back = of(visit, '/redeliver');
  return page({
    title: events === 0 ? 'No events to redeliver' : `Redeliver ${count}?`,
    breadcrumbs: [
      ['Redeliver', of(visit, '/redeliver')],
      ['Deliveries', of(visit, '/deliveries')],
      ...breadcrumbsOf(visit, webhook),
    ],
    body:
      events === 0
        ? emptyState({
            title: 'No matching events',
            body: html`${describeFields(visit, fields)}.`,
            action: html`<a href="${back}">Choose other events</a>`,
          })
        : form(visit, {
            action: of(visit, '/redeliver/review'),
            state,
            button: `Redeliver ${count}`,
            secondary: html`<a href="${back}">Cancel</a>`,
            fields: html`
              <p>${describeFields(visit, fields)}: <strong>${count}</strong> to <bdi>${nameOf(webhook)}</bdi>
                (${copyableUrl('endpoint URL', webhook.url)}).</p>
              <p>The receiver gets each event again with the same ID. Events are sent at a limited rate.</p>
              ${carried.map((name) => hiddenField(name, textOf(state, name)))}`,
          }),
  });
}

function describeFields(visit: MemberVisit, fields: RedeliverFields): Html {
  const selection = selectionOf(fields, visit.console.now());
  if ('from' in selection) return html`Events from ${time(selection.from)} to ${time(selection.to)}`;
  const span = failedSince.find(({ value }) => value === fields.hours)?.label.toLowerCase() ?? '';
  return html`Deliveries that failed in the ${span}`;
}

/** The fields that the confirmation repeats. */
const carried = ['what', 'hours', 'from', 'until', 'zone'] as const;
