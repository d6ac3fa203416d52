import { z } from 'zod';
import { deleteWebhook } from '#domain/webhooks/park.ts';
import { form } from '../../components/form.ts';
import { detailList } from '../../components/table.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { countOpen, dayInWords, typeList } from './cells.ts';
import { breadcrumbsOf, getWebhook, of, webhookRequest } from './find-webhook.ts';

/** Deleting, after a look at what is given up with it. */
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
      return redirect(visit.at('/webhooks'), { flash: 'The webhook is deleted: nothing is sent to it any more.' });
    },
    redraw: deletePage,
  }),
];

async function deletePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  if (webhook.state === 'deleted')
    return page({
      title: 'It is deleted already',
      breadcrumbs: breadcrumbsOf(visit, webhook),
      body: html`<p>Nothing is sent to it any more. <a href="${visit.at('/webhooks')}">To the webhooks</a></p>`,
    });
  const open = webhook.waiting + webhook.parked;
  return page({
    title: 'Delete the webhook?',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>There is no way back. To stop sending for a while, <a href="${of(visit, '/pause')}">pause it</a> instead: then nothing is lost.</p>
      ${detailList([
        ['Posts to', html`<bdi class="url">${webhook.url}</bdi>`],
        ['Is told of', typeList(webhook.eventTypes)],
        ['Last 24 hours', dayInWords(webhook.day)],
        [
          'Is given up',
          open === 0
            ? 'nothing: no delivery is open'
            : html`<strong class="problem">${countOpen(open)} open ${open === 1 ? 'delivery' : 'deliveries'}</strong>, which are cancelled and never arrive`,
        ],
        [
          'Is erased',
          `${webhook.secrets.length === 1 ? 'its signing secret' : `its ${webhook.secrets.length} signing secrets`}`,
        ],
        ['Stays', 'what was sent, and every attempt, on record'],
      ])}
      ${form(visit, {
        action: of(visit, '/delete'),
        state,
        button: 'Delete it for good',
        kind: 'danger',
        secondary: html`<a href="${of(visit)}">Keep it</a>`,
      })}`,
  });
}
