import type { WebhookRequest } from '#domain/webhooks/access.ts';
import { getWebhook as getWebhookWithout, getWebhookWithSecrets } from '#domain/webhooks/list.ts';
import { pageCounts, type WebhookHead } from '#domain/webhooks/summary.ts';
import { plainText } from '../../components/foreign-text.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Returns the domain request for the webhook in a page's path. */
export const webhookRequest = ({ organization, params, by }: MemberVisit): WebhookRequest => ({
  organizationId: organization.organizationId,
  webhookId: params.webhookId ?? '',
  by,
});

/**
 * Returns the webhook in a page's path. @throws WebhookRefused, shown as 404, when the organization
 * has no webhook with this id.
 */
export const getWebhook = (visit: MemberVisit) =>
  getWebhookWithSecrets(visit.console.em, webhookRequest(visit), pageCounts(visit.console.now()));

/** Returns the webhook without its counts, for pages that show none. */
export const getHead = (visit: MemberVisit) => getWebhookWithout(visit.console.em, webhookRequest(visit));

/** Returns whether a webhook may be changed here: not once deleted, and not while the cluster manages it. */
export const canChange = ({ state, managedBy }: Pick<WebhookHead, 'state' | 'managedBy'>): boolean =>
  state !== 'deleted' && managedBy === null;

/** Returns a path below the webhook of this page: `of(visit, '/edit')`. */
export const of = (visit: MemberVisit, rest = ''): string => visit.at(`/webhooks/${visit.params.webhookId}${rest}`);

/** Returns a webhook's display name: the start of its description, or its host. */
export function nameOf({ description, url }: Pick<WebhookHead, 'description' | 'url'>): string {
  const words = plainText(description.replace(/\s+/g, ' ').trim());
  if (words === '') return URL.parse(url)?.host ?? 'Webhook';
  return words.length > 60 ? `${words.slice(0, 59)}…` : words;
}

/** Returns the breadcrumbs of a page below a webhook. */
export const breadcrumbsOf = (visit: MemberVisit, webhook: Pick<WebhookHead, 'description' | 'url'>) =>
  [
    [nameOf(webhook), of(visit)],
    ['Webhooks', visit.at('/webhooks')],
  ] as const;
