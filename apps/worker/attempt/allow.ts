import type { AllowList } from '#domain/webhooks/address/addresses.ts';

/** The settings that decide about non-public addresses. */
interface AllowSettings {
  webhookAllow: AllowList;
  probeWebhook: { id: string; allow: AllowList } | null;
}

/**
 * Returns the non-public addresses that a webhook may reach. The operator's probe
 * (`orgctl probe create`) posts to a receiver inside the cluster while `helm test` runs. Only that
 * webhook may reach the receiver's address, so that no organization can register a name that leads
 * there.
 */
export function allowOf({ webhookAllow, probeWebhook }: AllowSettings, webhookId: string): AllowList {
  return probeWebhook !== null && probeWebhook.id === webhookId ? probeWebhook.allow : webhookAllow;
}
