import { changeWebhook } from '#domain/webhooks/change.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { renderWebhookFields, webhookForm, withUrlProblem } from './fields.ts';
import { getWebhookHead, webhookBreadcrumbs, webhookPath, webhookRequest } from './find-webhook.ts';
import { nameWarning } from './name-warning.ts';

/** Changes a webhook's URL, event types, description, order and requests per second. */
export const editRoutes = member.formPage({
  pageName: 'showEditWebhook',
  name: 'editWebhook',
  path: '/webhooks/:webhookId/edit',
  permission: 'org.webhooks.manage',
  stepUp: true,
  async values(_query, visit) {
    const { url, eventTypes, description, ordered, postsPerSecond } = await getWebhookHead(visit);
    const limit = postsPerSecond === null ? '' : String(postsPerSecond);
    return { url, eventTypes, description, postsPerSecond: limit, ...(ordered ? { ordered: 'on' } : {}) };
  },
  form: webhookForm,
  async act(visit, fields) {
    const webhook = await getWebhookHead(visit);
    const change = diffFields(webhook, fields);
    if (Object.keys(change).length === 0) return redirect(webhookPath(visit), { flash: 'No changes to save.' });
    const { database, webhookAllow, factors } = visit.console;
    const removed = change.url !== undefined && fields.removeHeaders ? webhook.headerNames : [];
    const changes = removed.map((name) => ({ name, value: null }));
    const headers = removed.length === 0 ? {} : { headers: { changes, sealingKeys: factors.sealingKeys } };
    const input = { ...webhookRequest(visit), ...change, ...headers, allowSameUrl: fields.allowSameUrl };
    await changeWebhook(database, input, webhookAllow);
    const warning = change.url === undefined ? nothing : await nameWarning(change.url);
    if (warning === nothing)
      return redirect(webhookPath(visit), { flash: `Webhook updated.${change.url === undefined ? '' : newUrl}` });
    return page({
      title: 'Webhook updated',
      breadcrumbs: webhookBreadcrumbs(visit, await getWebhookHead(visit)),
      body: html`${warning}
        <p class="actions">${linkButton(webhookPath(visit), 'View webhook')}
          <a href="${webhookPath(visit, '/edit')}">Edit webhook</a></p>`,
    });
  },
  render: editPage,
});

const newUrl = ' Waiting deliveries go to the new URL at their next attempt. Send a test event to check it.';

type Fields = Pick<WebhookSummary, 'url' | 'eventTypes' | 'description' | 'ordered' | 'postsPerSecond'>;

/** Returns the fields that the form changes. Only these are written and logged. */
function diffFields(before: Fields, after: Fields): Partial<Fields> {
  const { url, eventTypes, description, ordered, postsPerSecond } = after;
  const isSame =
    before.eventTypes.length === eventTypes.length && eventTypes.every((type) => before.eventTypes.includes(type));
  return {
    ...(url === before.url ? {} : { url }),
    ...(isSame ? {} : { eventTypes }),
    ...(description === before.description ? {} : { description }),
    ...(ordered === before.ordered ? {} : { ordered }),
    ...(postsPerSecond === before.postsPerSecond ? {} : { postsPerSecond }),
  };
}

async function editPage(visit: MemberVisit, given: FormState): Promise<Page> {
  const state = withUrlProblem(visit, given);
  const webhook = await getWebhookHead(visit);
  return page({
    title: 'Edit webhook',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      ${webhook.state === 'deleted' ? notice('bad', 'This webhook is deleted. You can’t change it.') : nothing}
      <p>A new URL applies from the next attempt, including for earlier events. New event types apply to new events, and
        earlier events of a type that you remove are still sent.</p>
      ${form(visit, {
        state,
        button: 'Save changes',
        cancel: webhookPath(visit),
        fields: renderWebhookFields(visit, state),
      })}`,
  });
}
