import { z } from 'zod';
import { type EventType, eventMeaning, eventTypes } from '#domain/contract/events.ts';
import { webhookDeleted } from '#domain/webhooks/access.ts';
import { recordTestOutcome, requestTest } from '#domain/webhooks/test-event.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import { choiceField, form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm, textOf } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { exampleOf } from './fields.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from './find-webhook.ts';
import { testOutcome } from './outcome.ts';
import { requireTemporal, temporalNotice } from './temporal.ts';

/** A test event of a type that the webhook takes, and how its receiver took it. */
export const testRoutes = [
  member.view({
    name: 'showTestWebhook',
    path: '/webhooks/:webhookId/test',
    permission: 'org.webhooks.manage',
    show: (visit) => testPage(visit, freshForm(), null),
  }),

  member.action({
    name: 'testWebhook',
    path: '/webhooks/:webhookId/test',
    permission: 'org.webhooks.manage',
    once: true,
    form: z.object({ type: z.enum(eventTypes as [EventType, ...EventType[]], { error: 'Choose the type to send.' }) }),
    async act(visit, { type }) {
      const result = await sendTest(visit, type);
      return testPage(visit, freshForm({ type }), result);
    },
    redraw: (visit, state) => testPage(visit, state, null),
  }),
];

/**
 * Sends a signed test event through a worker, waits for what comes of it, and keeps that in the
 * activity log.
 *
 * @param type null: the first that the webhook takes.
 * @throws WebhookRefused when the webhook is deleted or does not take the type; WorkflowsAway when
 * nobody could send it.
 */
export async function sendTest(visit: MemberVisit, type: EventType | null): Promise<TestResult> {
  requireTemporal(visit);
  const { em, workflows } = visit.console;
  const request = webhookRequest(visit);
  const eventType = await requestTest(em, request, type);
  const { organizationId, webhookId } = request;
  const result = await workflows.sendTest({ organizationId, webhookId, eventType });
  if (result === null) throw webhookDeleted();
  const { eventId, delivered, status, cause } = result;
  await recordTestOutcome(em, request, { eventType, eventId, delivered, status, cause });
  return result;
}

async function testPage(visit: MemberVisit, state: FormState, result: TestResult | null): Promise<Page> {
  const webhook = await getHead(visit);
  const types = eventTypes.filter((type) => webhook.eventTypes.includes(type));
  const drawn = textOf(state, 'type') === '' ? { ...state, values: { type: types[0] ?? '' } } : state;
  return page({
    title: 'Send a test event',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${result === null ? nothing : resultOf(visit, result, types.includes('seat.given'))}
      <p>It is signed and posted like any other, once, to <bdi class="url">${webhook.url}</bdi>. It holds <code>"test": true</code> and ids that name nothing. It is no delivery, so it has no number in the webhook’s count and is not among the deliveries: what comes of it stands here, and afterwards on <a href="${of(visit)}">the webhook’s page</a>.</p>
      ${form(visit, {
        action: of(visit, '/test'),
        state: drawn,
        button: result === null ? 'Send it' : 'Send another',
        secondary: html`<a href="${of(visit)}">Back to the webhook</a>`,
        fields: html`${choiceField(drawn, {
          name: 'type',
          label: 'Type',
          kind: 'radio',
          choices: types.map((type) => ({ value: type, label: html`<code>${type}</code>`, hint: eventMeaning[type] })),
        })}
        <details class="aside"><summary>What is sent</summary>${types.map((type) => exampleOf(visit, type))}</details>`,
      })}`,
  });
}

const resultOf = (visit: MemberVisit, result: TestResult, isToldOfSeats: boolean): Html =>
  html`<section class="result" aria-labelledby="result" role="status"><h2 id="result">${result.delivered ? 'The receiver accepted it' : 'The receiver did not accept it'}</h2>
    ${testOutcome(result)}
    ${result.delivered ? html`<p class="actions">${linkButton(of(visit, '/verify'), 'Check that it verifies signatures', 'secondary')}${isToldOfSeats && visit.may('org.seats.manage') ? html`<a href="${visit.at('/clients/seats/give')}">Give a seat, for a real event</a>` : nothing}</p>` : nothing}</section>`;
