import { z } from 'zod';
import { deleteWebhook } from '#delivery/requests.ts';
import { html } from '#runtime/pages/html.ts';
import { copyableUrl } from '../../components/copy.ts';
import { form } from '../../components/form.ts';
import { detailList } from '../../components/table.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { countDeliveries, describeDay, typeList } from './cells.ts';
import { getWebhook, webhookBreadcrumbs, webhookPath, webhookRequest, webhookTitle } from './find-webhook.ts';

/** Deletes a webhook, after a page that shows what is cancelled and deleted with it. */
export const deleteRoutes = member.formPage({
  pageName: 'showDeleteWebhook',
  name: 'deleteWebhook',
  path: '/webhooks/:webhookId/delete',
  permission: 'org.webhooks.manage',
  stepUp: true,
  form: z.object({}),
  async act(visit) {
    await deleteWebhook(visit.console.database, webhookRequest(visit));
    return redirect(visit.at('/webhooks'), { flash: 'Webhook deleted.' });
  },
  render: deletePage,
});

async function deletePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  if (webhook.state === 'deleted')
    return page({
      title: 'Webhook already deleted',
      breadcrumbs: webhookBreadcrumbs(visit, webhook),
      body: html`<p>No events are sent to this webhook. <a href="${visit.at('/webhooks')}">View webhooks</a></p>`,
    });
  const open = webhook.waiting + webhook.held;
  const cancelled = html`<strong class="problem">${countDeliveries(open, 'open')}</strong>`;
  const count = webhook.secrets.length;
  const secrets = count === 1 ? 'The signing secret' : `All ${count} signing secrets`;
  const name = webhookTitle(webhook);
  return page({
    title: `Delete webhook ${name}?`,
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      <p>You can’t undo this. To stop sending for a while without losing events,
        <a href="${webhookPath(visit, '/pause')}">pause the webhook</a> instead.</p>
      ${detailList([
        ['Endpoint URL', copyableUrl('endpoint URL', webhook.url)],
        ['Events', typeList(webhook.eventTypes)],
        ['Last 24 hours', describeDay(webhook.day)],
        ['Will be cancelled', open === 0 ? 'No deliveries' : cancelled],
        ['Will be deleted', `${secrets}${webhook.headerNames.length === 0 ? '' : ', and the custom headers'}`],
        ['Will be kept', 'The history of deliveries and attempts'],
      ])}
      ${form(visit, {
        state,
        button: `Delete webhook ${name}`,
        kind: 'danger',
        cancel: webhookPath(visit),
      })}`,
  });
}
