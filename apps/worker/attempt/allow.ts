import type { AllowList } from '#domain/webhooks/address/addresses.ts';

/** The part of the worker's settings that is read here. */
export interface AllowSettings {
  webhookAllow: AllowList;
  probeWebhook: { id: string; allow: AllowList } | null;
}

/**
 * Which addresses a webhook may reach although they are not public. The operator's probe (
 * `orgctl probe create`) posts to a receiver inside the cluster, for as long as `helm test` runs;
 * its address is allowed to that one webhook, so that no organization can reach it by registering a
 * name that leads there.
 */
export function allowOf({ webhookAllow, probeWebhook }: AllowSettings, webhookId: string): AllowList {
  return probeWebhook !== null && probeWebhook.id === webhookId ? probeWebhook.allow : webhookAllow;
}
