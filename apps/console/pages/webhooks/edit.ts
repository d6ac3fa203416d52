import { changeWebhook } from '#domain/webhooks/change.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { drawWebhookFields, webhookForm } from './fields.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from './find-webhook.ts';

/** Changes a webhook's URL, event types and description. */
export const editRoutes = [
  member.view({
    name: 'showEditWebhook',
    path: '/webhooks/:webhookId/edit',
    permission: 'org.webhooks.manage',
    show: (visit) => editPage(visit, null),
  }),

  member.action({
    name: 'editWebhook',
    path: '/webhooks/:webhookId/edit',
    permission: 'org.webhooks.manage',
    stepUp: true,
    form: webhookForm,
    async act(visit, fields) {
      const change = changeOf(await getHead(visit), fields);
      if (Object.keys(change).length === 0) return redirect(of(visit), { flash: 'No changes to save.' });
      await changeWebhook(visit.console.em, { ...webhookRequest(visit), ...change }, visit.console.webhookAllow);
      return redirect(of(visit), { flash: 'Webhook updated.' });
    },
    redraw: editPage,
  }),
];

type Fields = Pick<WebhookSummary, 'url' | 'eventTypes' | 'description'>;

/** Returns the fields that the form changes. Only these are written and logged. */
function changeOf(before: Fields, { url, eventTypes, description }: Fields): Partial<Fields> {
  const isSame =
    before.eventTypes.length === eventTypes.length && eventTypes.every((type) => before.eventTypes.includes(type));
  return {
    ...(url === before.url ? {} : { url }),
    ...(isSame ? {} : { eventTypes }),
    ...(description === before.description ? {} : { description }),
  };
}

async function editPage(visit: MemberVisit, state: FormState | null): Promise<Page> {
  const webhook = await getHead(visit);
  const { url, eventTypes, description } = webhook;
  const drawn = state ?? freshForm({ url, eventTypes, description });
  return page({
    title: 'Edit webhook',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      ${webhook.state === 'deleted' ? notice('bad', 'This webhook is deleted. You can’t change it.') : nothing}
      <p>A new URL applies from the next attempt, including for earlier events. New event types apply to new events.</p>
      ${form(visit, {
        action: of(visit, '/edit'),
        state: drawn,
        button: 'Save changes',
        secondary: html`<a href="${of(visit)}">Cancel</a>`,
        fields: drawWebhookFields(visit, drawn),
      })}`,
  });
}
