import type { ManagedWebhook } from '#domain/webhooks/managed.ts';
import { createConditions } from '../controller/conditions.ts';
import type { Failure, Report, ReportedCondition } from '../kube/custom-resource.ts';
import type { WebhookSubscription } from '../kube/resources.ts';
import type { ObservedSubscription } from './plan.ts';
import { originAnnotation, secretLabel } from './secrets.ts';

const ready = createConditions('Ready');
const published = createConditions('SecretPublished');
const delivering = createConditions('Delivering');

/** Returns the status of a subscription. When a pass failed, what was known stays. */
export function reportSubscription(
  resource: WebhookSubscription,
  observed: ObservedSubscription | null,
  failures: readonly Failure[],
): Report<WebhookSubscription> {
  const [failure] = failures; // no action follows one that failed
  if (observed === null) {
    const { id, activeKeyId, lastDeliveredAt } = resource.status ?? {};
    const { reason = 'Pending', message = 'The operator has not looked at it yet.' } = failure ?? {};
    const conditions = [
      ready.fails(reason, message),
      published.unknown(reason, message),
      delivering.unknown(reason, message),
    ];
    return { id, activeKeyId, lastDeliveredAt, conditions };
  }
  const { webhook } = observed;
  const secret = evaluateSecret(resource, observed);
  return {
    id: webhook?.id,
    activeKeyId: webhook?.secretId,
    lastDeliveredAt: webhook?.lastDeliveredAt ?? undefined,
    conditions: [evaluateReadiness(resource, observed, secret, failure), secret, evaluateDelivery(webhook)],
  };
}

function evaluateReadiness(
  { metadata, spec }: WebhookSubscription,
  { isAllowed, webhook, headers }: ObservedSubscription,
  secret: ReportedCondition,
  failure: Failure | undefined,
): ReportedCondition {
  if (failure !== undefined) return ready.fails(failure.reason, failure.message);
  if (!isAllowed) {
    const remedy = 'Add its id to spec.allowedOrganizations of the Region.';
    return ready.fails('OrganizationNotAllowed', `The Region does not allow this organization. ${remedy}`);
  }
  const { name } = spec.headersSecretRef ?? {};
  if (headers === 'missing') {
    const label = `${secretLabel}=${metadata.name}`;
    return ready.fails('HeadersNotFound', `There is no Secret ${name} with the label ${label}.`);
  }
  if (headers === 'elsewhere') {
    const remedy = `Annotate it with ${originAnnotation}=${URL.parse(spec.url)?.origin}.`;
    return ready.fails('HeadersOfOtherServer', `Secret ${name} is not for the server of the URL. ${remedy}`);
  }
  if (secret.status !== 'True') return { ...secret, type: 'Ready' };
  if (webhook === null) return ready.fails('Pending', 'The webhook is not created yet.');
  return ready.holds('Applied', 'The webhook is as declared.');
}

function evaluateSecret(
  { metadata, spec }: WebhookSubscription,
  { secret: state }: ObservedSubscription,
): ReportedCondition {
  const { generate, secretRef: ref } = spec.secret;
  if (generate === undefined) {
    if (state === 'current') return published.holds('Referenced', `Secret ${ref?.name} has the secret that signs.`);
    if (state !== 'missing') return published.fails('Pending', 'The referenced secret does not sign yet.');
    const label = `${secretLabel}=${metadata.name}`;
    const message = `There is no key secret in a Secret ${ref?.name} with the label ${label}.`;
    return published.fails('SecretNotFound', message);
  }
  const { secretName } = generate;
  if (state === 'current') return published.holds('Published', `Secret ${secretName} has the newest signing secret.`);
  if (state !== 'foreign') return published.fails('Pending', 'The newest signing secret is not published yet.');
  const message = `A Secret ${secretName} exists and is not of this object. Delete it, or name another.`;
  return published.fails('SecretNotOwned', message);
}

function evaluateDelivery(webhook: ManagedWebhook | null): ReportedCondition {
  if (webhook === null) return delivering.unknown('Pending', 'There is no webhook.');
  const { state, suspendedReason, failingSince } = webhook;
  if (state === 'paused')
    return delivering.fails('Paused', 'The webhook is paused. New events are held until suspend is false.');
  if (suspendedReason === 'failures') {
    const remedy = 'Fix it, set suspend to true, and then to false.';
    return delivering.fails('Suspended', `The receiver accepted no events for days. ${remedy}`);
  }
  if (suspendedReason === 'gone') {
    const remedy = 'Set another URL, or set suspend to true, and then to false.';
    return delivering.fails('Suspended', `The receiver answered 410 Gone. ${remedy}`);
  }
  if (failingSince !== null) return delivering.fails('Failing', `All attempts have failed since ${failingSince}.`);
  return delivering.holds('Active', 'Events are sent.');
}
