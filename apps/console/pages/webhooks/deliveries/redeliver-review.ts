import { z } from 'zod';
import { countRedelivery, requestRedelivery, type Selection } from '#domain/webhooks/redeliveries.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { copyableUrl } from '../../../components/copy.ts';
import { emptyState } from '../../../components/empty-state.ts';
import { form, hiddenField } from '../../../components/form.ts';
import { time } from '../../../components/time.ts';
import { timeZoneField } from '../../../web/date-time.ts';
import { findDomainProblem } from '../../../web/domain-problems.ts';
import { collectProblems, type FormState, getText } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveriesBreadcrumbs } from '../delivery-cells.ts';
import { getWebhookHead, webhookPath, webhookRequest, webhookTitle } from '../find-webhook.ts';
import { redeliverPage } from './redeliver.ts';
import { failedSince, type RedeliverFields, readSelection, redeliverForm } from './redeliver-form.ts';
import { eventCount } from './redelivery-cells.ts';

/** Accepts any query. `redeliverForm` validates it, so that problems are shown at their fields. */
const text = z.string().catch('');
const query = z.object({ what: text, hours: text, from: text, until: text, zone: timeZoneField });

/** Shows how many events a redelivery sends, and starts it when that is confirmed. */
export const redeliverReviewRoutes = member.formPage({
  pageName: 'reviewRedelivery',
  name: 'redeliver',
  path: '/webhooks/:webhookId/redeliver/review',
  permission: 'org.webhooks.manage',
  once: true,
  query,
  values: (query) => query,
  form: redeliverForm,
  async act(visit, fields) {
    const selection = readSelection(fields, visit.console.now());
    const { id } = await requestRedelivery(visit.console.database, { ...webhookRequest(visit), selection });
    return redirect(webhookPath(visit, `/redeliveries/${id}`));
  },
  render: reviewPage,
});

async function reviewPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const read = redeliverForm.safeParse(state.values);
  if (!read.success) return redeliverPage(visit, { ...state, ...collectProblems(read.error) });
  try {
    return await confirmPage(visit, state, read.data);
  } catch (error) {
    const problem = findDomainProblem(error);
    if (problem === null || problem.isNotFound) throw error;
    return redeliverPage(visit, { ...state, problem: problem.message });
  }
}

async function confirmPage(visit: MemberVisit, state: FormState, fields: RedeliverFields): Promise<Page> {
  const selection = readSelection(fields, visit.console.now());
  const { events, isCapped } = await countRedelivery(visit.console.database, { ...webhookRequest(visit), selection });
  const description = describeEvents(selection, fields.hours);
  const webhook = await getWebhookHead(visit);
  const count = isCapped ? `at least ${eventCount(events)}` : eventCount(events);
  const back = webhookPath(visit, '/redeliver');
  return page({
    title: events === 0 ? 'No events to redeliver' : `Redeliver ${count}?`,
    breadcrumbs: [['Redeliver', back], ...deliveriesBreadcrumbs(visit, webhook)],
    body:
      events === 0
        ? emptyState({
            title: 'No matching events',
            body: html`${description}.`,
            action: html`<a href="${back}">Choose other events</a>`,
          })
        : form(visit, {
            state,
            button: `Redeliver ${count}`,
            cancel: back,
            fields: html`
              <p>${description}: <strong>${count}</strong> to <bdi>${webhookTitle(webhook)}</bdi>
                (${copyableUrl('endpoint URL', webhook.url)}).</p>
              <p>The receiver gets each event again with the same ID. Events are sent at a limited rate.</p>
              ${Object.keys(query.shape).map((name) => hiddenField(name, getText(state, name)))}`,
          }),
  });
}

/** Returns which events a redelivery would send. */
function describeEvents(selection: Selection, hours: string): Html {
  if ('from' in selection) return html`Events from ${time(selection.from)} to ${time(selection.to)}`;
  const span = failedSince.find(({ value }) => value === hours)?.label.toLowerCase() ?? '';
  return html`Deliveries that failed in the ${span}`;
}
