import { plainText } from '#domain/contract/unseen-characters.ts';
import type { WebhookRequest } from '#domain/webhooks/access.ts';
import { getWebhook as getHead, getWebhookWithSecrets } from '#domain/webhooks/list.ts';
import { pageCounts, type WebhookHead } from '#domain/webhooks/summary.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Returns the domain request for the webhook in a page's path. */
export const webhookRequest = ({ request, params }: MemberVisit): WebhookRequest => ({
  ...request,
  webhookId: params.webhookId ?? '',
});

/**
 * Returns the webhook in a page's path. @throws WebhookError, shown as 404, when the organization
 * has no webhook with this id.
 */
export const getWebhook = (visit: MemberVisit) =>
  getWebhookWithSecrets(visit.console.database, webhookRequest(visit), pageCounts(visit.console.now()));

/** Returns the webhook without its counts, for pages that show none. */
export const getWebhookHead = (visit: MemberVisit) => getHead(visit.console.database, webhookRequest(visit));

/** Returns whether the console may change a webhook: not a deleted or Kubernetes-managed one. */
export const canChange = ({ state, managedBy }: Pick<WebhookHead, 'state' | 'managedBy'>): boolean =>
  state !== 'deleted' && managedBy === null;

/** Returns the path of this page's webhook, or of a page below it (`/edit`). */
export const webhookPath = (visit: MemberVisit, rest = ''): string =>
  visit.at(`/webhooks/${visit.params.webhookId}${rest}`);

/** What a webhook, or a delivery to it, is named by. */
export type NamedWebhook = Pick<WebhookHead, 'description' | 'url'> & ({ id: string } | { webhookId: string });

/**
 * Returns a webhook's name for a title: the start of its description. Without one, its host and the
 * end of its id, because an organization may have several webhooks at a host; the path of a URL may
 * contain a token.
 */
export function webhookTitle(webhook: NamedWebhook): string {
  const text = plainText(webhook.description.replace(/\s+/g, ' ').trim());
  const id = 'id' in webhook ? webhook.id : webhook.webhookId;
  if (text === '') return `${URL.parse(webhook.url)?.host ?? 'Webhook'} (${id.slice(-6)})`;
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** Returns the breadcrumbs of a page below a webhook. */
export const webhookBreadcrumbs = (visit: MemberVisit, webhook: NamedWebhook) =>
  [
    [webhookTitle(webhook), webhookPath(visit)],
    ['Webhooks', visit.at('/webhooks')],
  ] as const;
