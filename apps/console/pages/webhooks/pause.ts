import { z } from 'zod';
import { pauseWebhook } from '#domain/webhooks/park.ts';
import { form } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { formatOpenCount } from './cells.ts';
import { breadcrumbsOf, getWebhook, nameOf, of, webhookRequest } from './find-webhook.ts';

/** Pauses a webhook: new events are held until it is resumed. */
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
      return redirect(of(visit), { flash: 'Webhook paused. New events are held until you resume.' });
    },
    redraw: pausePage,
  }),
];

async function pausePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  const isActive = webhook.state === 'active';
  const name = nameOf(webhook);
  return page({
    title: isActive ? `Pause webhook ${name}?` : 'Webhook not active',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>New events are held until you resume the webhook, and then sent. An attempt that is in progress finishes.</p>
      ${webhook.waiting > 0 ? html`<p>${pendingCount(webhook.waiting)} will be held.</p>` : nothing}
      ${
        isActive
          ? form(visit, {
              action: of(visit, '/pause'),
              state,
              button: `Pause webhook ${name}`,
              secondary: html`<a href="${of(visit)}">Cancel</a>`,
            })
          : html`<p><a href="${of(visit)}">View webhook</a></p>`
      }`,
  });
}

const pendingCount = (count: number): string =>
  `${formatOpenCount(count)} pending ${count === 1 ? 'delivery' : 'deliveries'}`;
