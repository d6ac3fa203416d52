import type { ClaimedDelivery, QueuedWebhook } from './sql/claim.ts';

type Position = Pick<QueuedWebhook, 'organizationId' | 'webhookId'>;

/** Webhooks that one step lists, and selects for one claim: a claim of 10,000 webhooks took 180 ms instead of 4. */
export const listedAtOnce = 512;
const selectedAtOnce = 64;

const nil = '00000000-0000-0000-0000-000000000000';
const beginning = { organizationId: nil, webhookId: nil };

/**
 * Reaches every waiting webhook: it goes through the webhooks in the order of their ids, a bounded
 * number in each step, and then begins again.
 *
 * A webhook without a slot left, or of which claims got nothing twice, is saturated and skipped; once
 * may be chance, because another connection assigned slots of the organization. It is tried once
 * more when it may have a slot (`release`), and every `completeEveryMs`, because of other workers.
 */
export function createScan({ completeEveryMs }: { completeEveryMs: number }) {
  /** How often claims got nothing of a webhook, by its id. */
  const misses = new Map<string, { organizationId: string; times: number }>();
  /** Organizations that were released since the last step; null: all. A claim in progress may miss them. */
  const released = new Set<string | null>();
  let position: Position = beginning;
  let isComplete = false;
  let completeAt = Number.NEGATIVE_INFINITY;

  return {
    /** Webhooks of this organization, null: of all, may have a slot: the next claims try each once. */
    release: (organizationId: string | null): void => void released.add(organizationId),

    /** Returns the webhook after which the next step lists. */
    next(): Position {
      if (position === beginning) {
        isComplete = performance.now() - completeAt > completeEveryMs;
        if (isComplete) released.add(null);
      }
      const tried = released.size === 0 ? [] : [...misses.values()];
      for (const miss of tried) if (released.has(null) || released.has(miss.organizationId)) miss.times = 1;
      released.clear();
      return position;
    },

    select(after: Position, listed: readonly QueuedWebhook[]): QueuedWebhook[] {
      // All that wait are listed, so others need not be remembered.
      if (after === beginning && listed.length < listedAtOnce) {
        const waiting = new Set(listed.map(({ webhookId }) => webhookId));
        for (const webhookId of misses.keys()) if (!waiting.has(webhookId)) misses.delete(webhookId);
      }
      return listed
        .filter(({ webhookId, state }) => state === 'active' && (misses.get(webhookId)?.times ?? 0) < 2)
        .slice(0, selectedAtOnce);
    },

    /**
     * Notes a claim; a webhook that has no slot left after it is saturated at once. `isCut`: it got as
     * many as this process may claim, so others may have a slot.
     */
    note(selected: readonly QueuedWebhook[], deliveries: readonly ClaimedDelivery[], isCut: boolean): void {
      const claimed = new Map(deliveries.map(({ webhookId, isFull }) => [webhookId, isFull]));
      for (const { organizationId, webhookId } of selected) {
        const isFull = claimed.get(webhookId);
        if (isFull === undefined && isCut) continue;
        const times = isFull ? 2 : (misses.get(webhookId)?.times ?? 0) + 1;
        if (isFull === false) misses.delete(webhookId);
        else misses.set(webhookId, { organizationId, times });
      }
    },

    /** Advances behind the last webhook that needs no other step in this pass. */
    advance(listed: readonly QueuedWebhook[], selected: readonly QueuedWebhook[]): void {
      const isCut = selected.length === selectedAtOnce && selected.at(-1) !== listed.at(-1);
      const last = isCut ? selected.at(-1) : listed.at(-1);
      const isEnd = last === undefined || (!isCut && listed.length < listedAtOnce);
      position = isEnd ? beginning : last;
      if (isEnd && isComplete) completeAt = performance.now();
    },
  };
}
