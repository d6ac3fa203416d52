import { type Client, isGrpcServiceError } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import {
  deliveryAttributes,
  eventAttribute,
  eventTypeAttribute,
  keywordType,
  organizationAttribute,
  webhookAttribute,
} from '#workflows/deliver-event/search-attributes.ts';
import { compareSearchAttributes } from '#workflows/server-needs.ts';
import type { ClaimedDelivery } from './claimed-delivery.ts';

const askTimeoutMs = 5_000;
/** How long starts have none after a refusal: a server's nodes learn of new ones in a minute. */
const withoutForMs = 60_000;
const grpcInvalidArgument = 3;

/** The search attributes of deliveries in one namespace. Without them deliveries continue. */
export type DeliverySearchAttributes = Awaited<ReturnType<typeof openSearchAttributes>>;

/**
 * Creates the search attributes that the namespace lacks. Without the right to do so (another
 * account's, Temporal Cloud) it reports the command to `onProblem`, and deliveries start without
 * attributes until the worker is restarted.
 */
export async function openSearchAttributes(options: {
  client: Client;
  namespace: string;
  onProblem: (sentence: string) => void;
}) {
  const { client, namespace, onProblem } = options;
  const missing = await makeMissing(client, namespace);
  let offUntilMs = missing.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  if (missing.length > 0) {
    const flags = missing.map((name) => `--name ${name} --type Keyword`).join(' ');
    onProblem(
      `Temporal lacks the search attributes ${missing.join(', ')} and did not let the worker make them; ` +
        `deliveries continue without. Run "temporal operator search-attribute create --namespace ${namespace} ` +
        `${flags}" and start the worker again`,
    );
  }
  return {
    /** Returns a delivery's attributes, or undefined while the server does not accept them. */
    of({ organizationId, webhookId, eventId, type }: ClaimedDelivery): TypedSearchAttributes | undefined {
      if (performance.now() < offUntilMs) return undefined;
      return new TypedSearchAttributes([
        { key: organizationAttribute, value: organizationId },
        { key: webhookAttribute, value: webhookId },
        { key: eventAttribute, value: eventId },
        { key: eventTypeAttribute, value: type },
      ]);
    },

    /** Returns whether a start failed because of them. Those of the next minute have none. */
    wereRefused(error: unknown): boolean {
      const cause = error instanceof Error ? error.cause : undefined;
      if (performance.now() < offUntilMs || !isGrpcServiceError(cause) || cause.code !== grpcInvalidArgument)
        return false;
      offUntilMs = performance.now() + withoutForMs;
      onProblem('Temporal refused a delivery’s search attributes; deliveries are started without them for a minute');
      return true;
    },
  };
}

/** Returns the names of those that are still missing. */
async function makeMissing({ connection }: Client, namespace: string): Promise<string[]> {
  const findMissing = async (): Promise<string[]> => {
    const { missing, conflicting } = await within(() => compareSearchAttributes(connection, namespace));
    return [...missing, ...conflicting];
  };
  const within = <T>(ask: () => Promise<T>) => connection.withDeadline(Date.now() + askTimeoutMs, ask);
  const all = deliveryAttributes.map(({ name }) => name);
  const missing = await findMissing().catch(() => all);
  if (missing.length === 0) return [];
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, keywordType]));
  const added = await within(() =>
    connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
  ).then(
    () => true,
    () => false,
  );
  // Refused because another worker was faster, or because it is not permitted; the list shows
  // which. Added ones may take a moment to appear in it.
  return added ? [] : findMissing().catch(() => missing);
}
