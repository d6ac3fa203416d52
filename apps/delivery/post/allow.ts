import type { AllowList } from '#domain/webhooks/address/addresses.ts';

/** The settings that decide about non-public addresses. */
export interface AllowSettings {
  webhookAllow: AllowList;
  probeWebhook: { id: string; allow: AllowList } | null;
}

/**
 * Returns the non-public addresses that a webhook may reach. Only the probe of the operator may
 * reach its receiver inside the cluster: no organization can register a name that leads there.
 */
export function allowOf({ webhookAllow, probeWebhook }: AllowSettings, webhookId: string): AllowList {
  return probeWebhook !== null && probeWebhook.id === webhookId ? probeWebhook.allow : webhookAllow;
}
