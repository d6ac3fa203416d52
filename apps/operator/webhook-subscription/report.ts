import type { ManagedWebhook } from '#domain/webhooks/managed.ts';
import { condition } from '../controller/conditions.ts';
import type { Failure, JudgedCondition, Report } from '../controller/contract.ts';
import type { WebhookSubscription } from '../resources.ts';
import type { ObservedSubscription } from './plan.ts';

/** Returns the status of a subscription. When a pass failed, what was known stays. */
export function reportSubscription(
  resource: WebhookSubscription,
  observed: ObservedSubscription | null,
  failure: Failure | null,
): Report<WebhookSubscription> {
  if (observed === null) {
    const { id, activeKeyId, lastDeliveredAt } = resource.status ?? {};
    const unknown = failure ?? { reason: 'Pending', message: 'The operator has not looked at it yet.' };
    return {
      ...defined({ id, activeKeyId, lastDeliveredAt }),
      conditions: [
        condition('Ready', false, unknown.reason, unknown.message),
        condition('SecretPublished', null, unknown.reason, unknown.message),
        condition('Delivering', null, unknown.reason, unknown.message),
      ],
    };
  }
  const { webhook } = observed;
  const published = judgeSecret(resource, observed);
  return {
    ...defined({
      id: webhook?.id,
      activeKeyId: webhook?.secretId,
      lastDeliveredAt: webhook?.lastDeliveredAt ?? undefined,
    }),
    conditions: [judgeReadiness(observed, published, failure), published, judgeDelivery(webhook)],
  };
}

function judgeReadiness(
  { isAllowed, webhook }: ObservedSubscription,
  published: JudgedCondition,
  failure: Failure | null,
): JudgedCondition {
  if (failure !== null) return condition('Ready', false, failure.reason, failure.message);
  if (!isAllowed)
    return condition(
      'Ready',
      false,
      'OrganizationNotAllowed',
      'The Region does not allow this organization. Add its id to spec.allowedOrganizations of the Region.',
    );
  if (published.status !== 'True') return { ...published, type: 'Ready' };
  if (webhook === null) return condition('Ready', false, 'Pending', 'The webhook is not created yet.');
  return condition('Ready', true, 'Applied', 'The webhook is as declared.');
}

function judgeSecret({ spec: { secret } }: WebhookSubscription, { secret: state }: ObservedSubscription) {
  const type = 'SecretPublished';
  const { generate, secretRef } = secret;
  if (state === 'current')
    return generate === undefined
      ? condition(type, true, 'Referenced', `Secret ${secretRef?.name} has the secret that signs.`)
      : condition(type, true, 'Published', `Secret ${generate.secretName} has the newest signing secret.`);
  if (generate === undefined)
    return state === 'missing'
      ? condition(
          type,
          false,
          'SecretNotFound',
          `There is no key ${secretRef?.key} in a Secret ${secretRef?.name} with the label orgapi.dev/webhook-secret.`,
        )
      : condition(type, false, 'Pending', 'The referenced secret does not sign yet.');
  return state === 'foreign'
    ? condition(
        type,
        false,
        'SecretNotOwned',
        `A Secret ${generate.secretName} exists and is not of this object. Delete it, or name another.`,
      )
    : condition(type, false, 'Pending', 'The newest signing secret is not published yet.');
}

function judgeDelivery(webhook: ManagedWebhook | null): JudgedCondition {
  const type = 'Delivering';
  if (webhook === null) return condition(type, null, 'Pending', 'There is no webhook.');
  const { parkedReason, failingSince } = webhook;
  if (parkedReason === 'paused')
    return condition(type, false, 'Paused', 'The webhook is paused. New events are held until suspend is false.');
  if (parkedReason === 'failing')
    return condition(
      type,
      false,
      'Suspended',
      'The receiver accepted no events for days. Fix it, set suspend to true, and then to false.',
    );
  if (failingSince !== null)
    return condition(type, false, 'Failing', `All deliveries have failed since ${failingSince}.`);
  return condition(type, true, 'Active', 'Events are sent.');
}

/** Leaves out what is undefined, which the API server does not have. */
function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as { [K in keyof T]?: NonNullable<T[K]> };
}
