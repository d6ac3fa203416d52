import { z } from 'zod';
import { deleteWebhook } from '#domain/webhooks/park.ts';
import { copyableUrl } from '../../components/copy.ts';
import { form } from '../../components/form.ts';
import { detailList } from '../../components/table.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { describeDay, formatOpenCount, typeList } from './cells.ts';
import { breadcrumbsOf, getWebhook, nameOf, of, webhookRequest } from './find-webhook.ts';

/** Deletes a webhook, after a page that shows what is cancelled and deleted with it. */
export const deleteRoutes = [
  member.view({
    name: 'showDeleteWebhook',
    path: '/webhooks/:webhookId/delete',
    permission: 'org.webhooks.manage',
    show: (visit) => deletePage(visit, freshForm()),
  }),

  member.action({
    name: 'deleteWebhook',
    path: '/webhooks/:webhookId/delete',
    permission: 'org.webhooks.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      await deleteWebhook(visit.console.em, webhookRequest(visit));
      return redirect(visit.at('/webhooks'), { flash: 'Webhook deleted.' });
    },
    redraw: deletePage,
  }),
];

async function deletePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  if (webhook.state === 'deleted')
    return page({
      title: 'Webhook already deleted',
      breadcrumbs: breadcrumbsOf(visit, webhook),
      body: html`<p>No events are sent to this webhook. <a href="${visit.at('/webhooks')}">View webhooks</a></p>`,
    });
  const open = webhook.waiting + webhook.parked;
  const name = nameOf(webhook);
  return page({
    title: `Delete webhook ${name}?`,
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>You can’t undo this. To stop sending for a while without losing events,
        <a href="${of(visit, '/pause')}">pause the webhook</a> instead.</p>
      ${detailList([
        ['Endpoint URL', copyableUrl('endpoint URL', webhook.url)],
        ['Events', typeList(webhook.eventTypes)],
        ['Last 24 hours', describeDay(webhook.day)],
        [
          'Will be cancelled',
          open === 0
            ? 'No deliveries'
            : html`<strong class="problem">${formatOpenCount(open)} open ${
                open === 1 ? 'delivery' : 'deliveries'
              }</strong>`,
        ],
        [
          'Will be deleted',
          webhook.secrets.length === 1 ? 'The signing secret' : `All ${webhook.secrets.length} signing secrets`,
        ],
        ['Will be kept', 'The history of deliveries and attempts'],
      ])}
      ${form(visit, {
        action: of(visit, '/delete'),
        state,
        button: `Delete webhook ${name}`,
        kind: 'danger',
        secondary: html`<a href="${of(visit)}">Cancel</a>`,
      })}`,
  });
}
