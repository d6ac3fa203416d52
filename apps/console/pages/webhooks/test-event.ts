import { z } from 'zod';
import { type EventType, eventDescriptions, eventTypes } from '#domain/contract/events.ts';
import { webhookDeleted } from '#domain/webhooks/access.ts';
import { recordTestOutcome, requestTest } from '#domain/webhooks/test-event.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import { isolatedUrl } from '../../components/copy.ts';
import { choiceField, form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type FormState, freshForm, getText } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { withoutShare } from '../../web/shares.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { renderExample } from './fields.ts';
import { getWebhookHead, webhookBreadcrumbs, webhookPath, webhookRequest } from './find-webhook.ts';
import { requireTemporal, temporalNotice } from './temporal.ts';
import { testResultDetails } from './test-result.ts';

/** Sends a test event and shows the receiver's response. */
export const testRoutes = member.formPage({
  pageName: 'showTestWebhook',
  name: 'testWebhook',
  path: '/webhooks/:webhookId/test',
  permission: 'org.webhooks.manage',
  once: true,
  form: z.object({ type: z.enum(eventTypes as [EventType, ...EventType[]], { error: 'Choose an event type.' }) }),
  act: async (visit, { type }) => testPage(visit, freshForm({ type }), await sendTest(visit, type)),
  render: (visit, state) => testPage(visit, state, null),
});

/**
 * Sends a signed test event through a worker, waits for the result and records it in the audit
 * log.
 *
 * @param type - null: the first of the webhook's event types.
 * @throws WebhookError when the webhook is deleted or not subscribed to the type;
 * WorkflowsUnavailableError when no worker could send it.
 */
export async function sendTest(visit: MemberVisit, type: EventType | null): Promise<TestResult> {
  requireTemporal(visit);
  const { database, workflows } = visit.console;
  const request = webhookRequest(visit);
  const eventType = await requestTest(database, request, type);
  const { organizationId, webhookId } = request;
  const result = await withoutShare(visit, () => workflows.sendTest({ organizationId, webhookId, eventType }));
  if (result === null) throw webhookDeleted();
  const { eventId, delivered, status, cause } = result;
  await recordTestOutcome(database, request, { eventType, eventId, delivered, status, cause });
  return result;
}

async function testPage(visit: MemberVisit, state: FormState, result: TestResult | null): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  const types = eventTypes.filter((type) => webhook.eventTypes.includes(type));
  const rendered = getText(state, 'type') === '' ? { ...state, values: { type: types[0] ?? '' } } : state;
  return page({
    title: 'Send test event',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${result === null ? nothing : renderResult(visit, result, types.includes('seat.given'))}
      <p>A test event is signed and sent once to ${isolatedUrl(webhook.url)}. It contains
        <code>"test": true</code> and placeholder IDs. The result appears here and on
        <a href="${webhookPath(visit)}">the webhook’s page</a>, not in the list of deliveries.</p>
      ${form(visit, {
        state: rendered,
        button: result === null ? 'Send test event' : 'Send another test event',
        secondary: html`<a href="${webhookPath(visit)}">View webhook</a>`,
        fields: html`${choiceField(rendered, {
          name: 'type',
          label: 'Event type',
          kind: 'radio',
          choices: types.map((type) => ({
            value: type,
            label: html`<code>${type}</code>`,
            hint: eventDescriptions[type],
          })),
        })}
        <details class="aside"><summary>Example events</summary>${types.map((type) =>
          renderExample(visit, type),
        )}</details>`,
      })}`,
  });
}

function renderResult(visit: MemberVisit, result: TestResult, hasSeatEvents: boolean): Html {
  const { delivered } = result;
  const verify = linkButton(webhookPath(visit, '/verify'), 'Check signature verification', 'secondary');
  const assign = html`<a href="${visit.at('/clients/seats/assign')}">Assign a seat to send a real event</a>`;
  const next = html`<p class="actions">${verify}
    ${hasSeatEvents && visit.may('org.seats.manage') ? assign : nothing}</p>`;
  return html`<section class="result" aria-labelledby="result" role="status">
    <h2 id="result">${delivered ? 'Test event delivered' : 'Test event failed'}</h2>
    ${testResultDetails(result)}${delivered ? next : nothing}</section>`;
}
