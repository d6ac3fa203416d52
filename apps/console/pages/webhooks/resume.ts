import { z } from 'zod';
import { resumeWebhook } from '#domain/webhooks/park.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import { checkboxField, form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { checkbox, type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { WorkflowsAway } from '../../workflows.ts';
import { countOpen } from './cells.ts';
import { breadcrumbsOf, getWebhook, of, webhookRequest } from './find-webhook.ts';
import { testOutcome } from './outcome.ts';
import { temporalNotice } from './temporal.ts';
import { sendTest } from './test-event.ts';

/**
 * Resuming: a signed probe first, and only when the receiver accepts it what has waited, slowly at
 * first.
 */
export const resumeRoutes = [
  member.view({
    name: 'showResumeWebhook',
    path: '/webhooks/:webhookId/resume',
    permission: 'org.webhooks.manage',
    show: (visit) => resumePage(visit, freshForm(), null),
  }),

  member.action({
    name: 'resumeWebhook',
    path: '/webhooks/:webhookId/resume',
    permission: 'org.webhooks.manage',
    stepUp: true,
    once: true,
    form: z.object({ withoutProbe: checkbox }),
    async act(visit, { withoutProbe }) {
      if (!withoutProbe) {
        const probe = await sendTest(visit, null).catch(withAdvice);
        if (!probe.delivered) return resumePage(visit, freshForm(), probe);
      }
      const { deliveries } = await resumeWebhook(visit.console.em, webhookRequest(visit));
      const moved = deliveries === 0 ? '' : ` ${countOpen(deliveries)} of what waited is on its way.`;
      const how = withoutProbe
        ? 'The webhook is active.'
        : 'The receiver accepted the probe, and the webhook is active.';
      return redirect(of(visit), { flash: `${how}${moved}` });
    },
    redraw: (visit, state) => resumePage(visit, state, null),
  }),
];

/** @throws what it is given, with the way to go on without a probe. */
function withAdvice(error: unknown): never {
  if (!(error instanceof WorkflowsAway)) throw error;
  throw new WorkflowsAway(`The probe could not be sent. ${error.message} Or resume without it.`, { cause: error });
}

async function resumePage(visit: MemberVisit, state: FormState, probe: TestResult | null): Promise<Page> {
  const webhook = await getWebhook(visit);
  const isParked = webhook.state === 'parked';
  return page({
    title: isParked ? 'Resume the webhook?' : 'There is nothing to resume',
    status: probe === null ? 200 : 422,
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${probe === null ? nothing : html`<section class="result" aria-labelledby="probe">${notice('bad', 'The receiver did not accept the probe, so the webhook stays as it is.')}<h2 id="probe">What came of the probe</h2>${testOutcome(probe)}</section>`}
      ${
        isParked
          ? html`<p>A signed test event is posted first. Once the receiver has accepted it, ${webhook.parked === 0 ? 'the webhook is active again; nothing has waited meanwhile.' : `what has waited goes out, ${countOpen(webhook.parked)} ${webhook.parked === 1 ? 'delivery' : 'deliveries'}: one at a time at first, and twice as many after each that is accepted, up to ten.`}</p>
            ${form(visit, {
              action: of(visit, '/resume'),
              state,
              button: 'Resume it',
              secondary: html`<a href="${of(visit)}">Leave it as it is</a>`,
              fields: checkboxField(state, {
                name: 'withoutProbe',
                label: 'Without the test event',
                hint: 'For a receiver that takes real events only. If it still fails, deliveries are retried as usual.',
              }),
            })}`
          : html`<p>The webhook is ${webhook.state === 'active' ? 'active already' : 'deleted'}. <a href="${of(visit)}">Back to the webhook</a></p>`
      }`,
  });
}
