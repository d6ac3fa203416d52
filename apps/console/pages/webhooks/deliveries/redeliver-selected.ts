import { z } from 'zod';
import { redeliverOne } from '#delivery/requests.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import type { DeliveryRef } from '#domain/webhooks/search-deliveries.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { copyableUrl } from '../../../components/copy.ts';
import { form, hiddenField } from '../../../components/form.ts';
import { linkButton } from '../../../components/link.ts';
import { collectProblems, type FormState, getText, getTexts } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { webhookName } from '../cells.ts';
import { eventCount } from './redelivery-cells.ts';

/** How many deliveries can be selected in a list: those of one page. */
const maxSelected = 25;

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const webhookField = z.union([z.guid(), z.literal('')]).catch('');

/** The selected deliveries, each as `<webhook>.<event>`. `webhook` is the one of the list. */
const selectionFields = z.object({
  webhook: webhookField,
  delivery: z
    .array(z.string().regex(new RegExp(`^${uuid}\\.${uuid}$`)))
    .min(1, 'Select at least one delivery.')
    .max(maxSelected),
});

/** Shows which selected deliveries are sent again, and sends them when that is confirmed. */
export const redeliverSelectedRoutes = member.formPage({
  pageName: 'reviewSelected',
  name: 'redeliverSelected',
  path: '/deliveries/redeliver',
  permission: 'org.webhooks.manage',
  once: true,
  query: z.object({ webhook: webhookField, delivery: z.array(z.string()) }),
  values: (query) => query,
  form: selectionFields,
  async act(visit, fields) {
    const { sent, skipped } = await redeliverAll(visit, parseSelected(fields.delivery));
    const rest = skipped === 0 ? '' : ` ${eventCount(skipped)} can’t be sent again.`;
    return redirect(listPath(visit, fields.webhook), { flash: `Redelivery of ${eventCount(sent)} requested.${rest}` });
  },
  render: reviewPage,
});

/** Rejections of one delivery that do not stop the others. */
const skippedReasons: readonly string[] = [
  'delivery_cancelled',
  'event_too_old',
  'no_such_delivery',
  'no_such_webhook',
  'webhook_not_active',
  'webhook_deleted',
  'webhook_managed',
];

/**
 * Sends each selected delivery again, in a separate transaction with its audit entry.
 *
 * @throws WebhookError when none can be sent: the first problem.
 */
async function redeliverAll(visit: MemberVisit, keys: readonly DeliveryRef[]) {
  let sent = 0;
  let rejected: WebhookError | null = null;
  for (const key of keys) {
    try {
      await redeliverOne(visit.console.database, { ...visit.request, ...key });
      sent += 1;
    } catch (error) {
      if (!(error instanceof WebhookError) || !skippedReasons.includes(error.reason)) throw error;
      rejected ??= error;
    }
  }
  if (sent === 0 && rejected !== null) throw rejected;
  return { sent, skipped: keys.length - sent };
}

async function reviewPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const back = listPath(visit, getText(state, 'webhook'));
  const read = selectionFields.safeParse(state.values);
  const breadcrumbs = [['Deliveries', back]] as const;
  if (!read.success) {
    const { problems } = collectProblems(read.error);
    return page({
      title: 'No deliveries selected',
      breadcrumbs,
      body: html`<p>${problems.delivery}</p><p class="actions">${linkButton(back, 'View deliveries')}</p>`,
    });
  }
  const refs = parseSelected(read.data.delivery);
  const count = eventCount(refs.length);
  return page({
    title: `Redeliver ${count}?`,
    breadcrumbs,
    body: form(visit, {
      state,
      button: `Redeliver ${count}`,
      cancel: back,
      fields: html`
        <ul>${await describeWebhooks(visit, refs)}</ul>
        <p>The receiver gets each event again with the same ID. Events are sent at a limited rate.</p>
        ${hiddenField('webhook', getText(state, 'webhook'))}
        ${getTexts(state, 'delivery').map((key) => hiddenField('delivery', key))}`,
    }),
  });
}

/** Returns a line for each webhook: how many events, and where to. */
async function describeWebhooks(visit: MemberVisit, keys: readonly DeliveryRef[]) {
  const webhooks = await listWebhooks(visit.console.database, visit.request);
  return webhooks.map((webhook) => {
    const count = keys.filter(({ webhookId }) => webhookId === webhook.id).length;
    if (count === 0) return nothing;
    const url = copyableUrl('endpoint URL', webhook.url);
    return html`<li><strong>${eventCount(count)}</strong> to ${webhookName(webhook)} ${url}</li>`;
  });
}

const listPath = (visit: MemberVisit, webhookId: string): string =>
  visit.at(webhookId === '' ? '/deliveries' : `/webhooks/${webhookId}/deliveries`);

/** Returns the keys of selected deliveries, each once. */
const parseSelected = (selected: readonly string[]): DeliveryRef[] =>
  [...new Set(selected)].map((key) => {
    const [webhookId = '', eventId = ''] = key.split('.');
    return { webhookId, eventId };
  });
