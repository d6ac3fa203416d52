import type { WebhookRequest } from '#domain/webhooks/access.ts';
import { getWebhookHead, getWebhookOutlook, type WebhookHead } from '#domain/webhooks/summary.ts';
import { plainText } from '../../components/received-text.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** The webhook that a page's address names, as the domain takes it. */
export const webhookRequest = ({ organization, params, by }: MemberVisit): WebhookRequest => ({
  organizationId: organization.organizationId,
  webhookId: params.webhookId ?? '',
  by,
});

/**
 * The webhook that a page's address names. @throws WebhookRefused when the organization has none of
 * this id, drawn as 404.
 */
export const getWebhook = (visit: MemberVisit) =>
  getWebhookOutlook(visit.console.em, webhookRequest(visit), visit.console.now());

/** The same without its numbers, for pages that show none. */
export const getHead = (visit: MemberVisit) => getWebhookHead(visit.console.em, webhookRequest(visit));

/** A path of the webhook of this page: `of(visit, '/edit')`. */
export const of = (visit: MemberVisit, rest = ''): string => visit.at(`/webhooks/${visit.params.webhookId}${rest}`);

/** What people call a webhook: the first words of its description, or else its host. */
export function nameOf({ description, url }: Pick<WebhookHead, 'description' | 'url'>): string {
  const words = plainText(description.replace(/\s+/g, ' ').trim());
  if (words === '') return URL.parse(url)?.host ?? 'Webhook';
  return words.length > 60 ? `${words.slice(0, 59)}…` : words;
}

/** The pages above one of a webhook. */
export const breadcrumbsOf = (visit: MemberVisit, webhook: Pick<WebhookHead, 'description' | 'url'>) =>
  [
    [nameOf(webhook), of(visit)],
    ['Webhooks', visit.at('/webhooks')],
  ] as const;
