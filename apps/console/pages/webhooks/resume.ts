import { z } from 'zod';
import { resumeWebhook } from '#delivery/requests.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { oldestRedeliverable } from '#domain/webhooks/redeliverable.ts';
import { requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import { holdsDeliveries } from '#domain/webhooks/status.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import { checkboxField, form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { checkbox, type FormState, freshForm } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { WorkflowsUnavailableError } from '../../web/temporal.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { countDeliveries } from './cells.ts';
import { getWebhook, webhookBreadcrumbs, webhookPath, webhookRequest, webhookTitle } from './find-webhook.ts';
import { temporalNotice } from './temporal.ts';
import { sendTest } from './test-event.ts';
import { testResultDetails } from './test-result.ts';

/** Resumes a webhook: sends a test event and, once the receiver accepts it, the held deliveries. */
export const resumeRoutes = member.formPage({
  pageName: 'showResumeWebhook',
  name: 'resumeWebhook',
  path: '/webhooks/:webhookId/resume',
  permission: 'org.webhooks.manage',
  stepUp: true,
  once: true,
  form: z.object({ withoutProbe: checkbox, redeliverFailed: checkbox }),
  async act(visit, { withoutProbe, redeliverFailed }) {
    if (!withoutProbe) {
      const probe = await sendTest(visit, null).catch(rethrowWithAdvice);
      if (!probe.delivered) return resumePage(visit, freshForm(), probe);
    }
    // Read before: a resume clears since when deliveries have failed.
    const { failingSince } = await getWebhook(visit);
    const { deliveries } = await resumeWebhook(visit.console.database, webhookRequest(visit));
    const accepted = withoutProbe ? '' : 'The receiver accepted the test event. ';
    const sent = deliveries === 0 ? '' : ` ${heldDeliveriesAre(deliveries)} being sent.`;
    const again = redeliverFailed && failingSince !== null ? await redeliverSince(visit, failingSince) : '';
    return redirect(webhookPath(visit), { flash: `${accepted}Webhook resumed.${sent}${again}` });
  },
  render: (visit, state) => resumePage(visit, state, null),
});

const heldDeliveriesAre = (count: number): string => `${countDeliveries(count, 'held')} ${count === 1 ? 'is' : 'are'}`;

/**
 * Requests that the events be sent again that have failed since a time (ISO text). Returns what
 * happened in a sentence, because the webhook is resumed either way.
 */
async function redeliverSince(visit: MemberVisit, failingSince: string): Promise<string> {
  const oldest = oldestRedeliverable(visit.console.now()).getTime() + 60_000;
  const failedSince = new Date(Math.max(Date.parse(failingSince), oldest)).toISOString();
  try {
    await requestRedelivery(visit.console.database, { ...webhookRequest(visit), selection: { failedSince } });
    return ' Redelivery of failed events requested.';
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    return ` Failed events are not redelivered. ${error.message}`;
  }
}

/** Throws the error again, with advice on how to resume without a test event. */
function rethrowWithAdvice(error: unknown): never {
  if (!(error instanceof WorkflowsUnavailableError)) throw error;
  throw new WorkflowsUnavailableError(
    `The test event could not be sent. ${error.message} You can also resume without it.`,
    {
      cause: error,
    },
  );
}

async function resumePage(visit: MemberVisit, state: FormState, probe: TestResult | null): Promise<Page> {
  const webhook = await getWebhook(visit);
  const isHeld = holdsDeliveries(webhook.state);
  const name = webhookTitle(webhook);
  return page({
    title: isHeld ? `Resume webhook ${name}?` : 'Webhook not paused',
    status: probe === null ? 200 : 422,
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${probe === null ? nothing : probeSection(visit, probe)}
      ${
        isHeld
          ? html`<p>A test event is sent first. If the receiver accepts it, ${consequence(webhook.held)}</p>
            ${form(visit, {
              state,
              button: `Resume webhook ${name}`,
              cancel: webhookPath(visit),
              fields: html`${checkboxField(state, {
                name: 'withoutProbe',
                label: 'Skip the test event',
                hint: 'For receivers that accept real events only. Failed deliveries are retried as usual.',
              })}
              ${
                webhook.failingSince === null
                  ? nothing
                  : checkboxField(state, {
                      name: 'redeliverFailed',
                      label: 'Redeliver failed events',
                      hint: 'Also sends events whose last attempt failed since the receiver began to fail.',
                    })
              }`,
            })}`
          : html`<p>This webhook is ${webhook.state === 'active' ? 'already active' : 'deleted'}.
              <a href="${webhookPath(visit)}">View webhook</a></p>`
      }`,
  });
}

const probeSection = (
  visit: MemberVisit,
  probe: TestResult,
): Html => html`<section class="result" aria-labelledby="probe">
  ${notice('bad', 'The receiver did not accept the test event. The webhook was not resumed.')}
  <h2 id="probe">Test event</h2>${testResultDetails(probe)}
  <p><a href="${webhookPath(visit, '/edit')}">Edit webhook</a>, or repair the receiver. Then resume again.</p>
  </section>`;

const consequence = (held: number): string =>
  held === 0
    ? 'the webhook becomes active. No deliveries are held.'
    : `${heldDeliveriesAre(held)} sent: one at a time at first, then twice as many after each fast success, up to ten.`;
