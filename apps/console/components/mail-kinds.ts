import type { OptionalKind } from '#domain/mail/kinds.ts';

/** What a member may turn off, as the end of "emails about …" and as the label of a choice. */
export const optionalLabels: Readonly<Record<OptionalKind, string>> = {
  'webhook.failing': 'webhooks that fail',
  'webhook.suspended': 'webhooks that are suspended and resumed',
  'key.expiring': 'API keys that expire soon',
};
