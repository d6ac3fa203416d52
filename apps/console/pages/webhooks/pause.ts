import { z } from 'zod';
import { pauseWebhook } from '#domain/webhooks/park.ts';
import { form } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { countOpen } from './cells.ts';
import { breadcrumbsOf, getWebhook, of, webhookRequest } from './find-webhook.ts';

/** Pausing: events are kept, nothing is sent. */
export const pauseRoutes = [
  member.view({
    name: 'showPauseWebhook',
    path: '/webhooks/:webhookId/pause',
    permission: 'org.webhooks.manage',
    show: (visit) => pausePage(visit, freshForm()),
  }),

  member.action({
    name: 'pauseWebhook',
    path: '/webhooks/:webhookId/pause',
    permission: 'org.webhooks.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      await pauseWebhook(visit.console.em, webhookRequest(visit));
      return redirect(of(visit), { flash: 'The webhook is paused: events are kept, and none is sent.' });
    },
    redraw: pausePage,
  }),
];

async function pausePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  const isActive = webhook.state === 'active';
  return page({
    title: isActive ? 'Pause the webhook?' : 'It is not active',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>Nothing is sent while it is paused, and nothing is lost: events that happen meanwhile are kept, and go out when it is resumed. An attempt that is under way ends by itself.</p>
      ${webhook.waiting > 0 ? html`<p>${countOpen(webhook.waiting)} ${webhook.waiting === 1 ? 'delivery waits' : 'deliveries wait'} now, and will be kept.</p>` : nothing}
      ${
        isActive
          ? form(visit, {
              action: of(visit, '/pause'),
              state,
              button: 'Pause it',
              secondary: html`<a href="${of(visit)}">Leave it as it is</a>`,
            })
          : html`<p><a href="${of(visit)}">Back to the webhook</a></p>`
      }`,
  });
}
