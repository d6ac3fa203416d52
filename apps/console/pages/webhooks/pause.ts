import { z } from 'zod';
import { pauseWebhook } from '#delivery/requests.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { countDeliveries } from './cells.ts';
import { getWebhook, webhookBreadcrumbs, webhookPath, webhookRequest, webhookTitle } from './find-webhook.ts';

/** Pauses a webhook: new events are held until it is resumed. */
export const pauseRoutes = member.formPage({
  pageName: 'showPauseWebhook',
  name: 'pauseWebhook',
  path: '/webhooks/:webhookId/pause',
  permission: 'org.webhooks.manage',
  stepUp: true,
  form: z.object({}),
  async act(visit) {
    await pauseWebhook(visit.console.database, webhookRequest(visit));
    return redirect(webhookPath(visit), { flash: 'Webhook paused. New events are held until you resume.' });
  },
  render: pausePage,
});

async function pausePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  const isActive = webhook.state === 'active';
  const name = webhookTitle(webhook);
  return page({
    title: isActive ? `Pause webhook ${name}?` : 'Webhook not active',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      <p>New events are held until you resume the webhook, and then sent. An attempt that is in progress finishes.</p>
      ${webhook.waiting > 0 ? html`<p>${countDeliveries(webhook.waiting, 'unfinished')} will be held.</p>` : nothing}
      ${
        isActive
          ? form(visit, { state, button: `Pause webhook ${name}`, cancel: webhookPath(visit) })
          : html`<p><a href="${webhookPath(visit)}">View webhook</a></p>`
      }`,
  });
}
