import type { ClaimedDelivery, QueuedWebhook } from './sql/claim.ts';

/** One look for work: it lists at most `atMost` webhooks after a place. */
interface Turn {
  after: { organizationId: string; webhookId: string };
  atMost: number;
  /** Whether webhooks that are held up are covered too. */
  includesHeldUp: boolean;
}

/** Webhooks that one look lists, and that one claim covers: one of 10,000 webhooks took 180 ms instead of 4. */
const listedAtOnce = 512;
const coveredAtOnce = 64;

const nil = '00000000-0000-0000-0000-000000000000';
const beginning = { organizationId: nil, webhookId: nil };

/**
 * Lets every waiting webhook have its turn: looks go through the webhooks in the order of their
 * ids, a bounded number in each, and then begin again.
 *
 * Webhooks without a free slot are held up and passed over. They are covered when an attempt has
 * ended, and every `fullEveryMs`: other workers free slots too.
 */
export function createTurns({ fullEveryMs }: { fullEveryMs: number }) {
  let heldUp = new Set<string>();
  let missed = new Set<string>();
  let place: Turn['after'] = beginning;
  let isFull = false;
  let fullAt = Number.NEGATIVE_INFINITY;

  return {
    /** `isWoken`: an attempt has ended. */
    next(isWoken: boolean): Turn {
      if (place === beginning) isFull = performance.now() - fullAt > fullEveryMs;
      const includesHeldUp = isFull || isWoken;
      return { after: place, atMost: includesHeldUp ? coveredAtOnce : listedAtOnce, includesHeldUp };
    },

    /** Chooses the webhooks that a claim covers. */
    choose(turn: Turn, listed: readonly QueuedWebhook[]): QueuedWebhook[] {
      // All that wait are listed, so others need not be remembered.
      if (turn.after === beginning && listed.length < turn.atMost)
        heldUp = heldUp.intersection(new Set(listed.map(({ webhookId }) => webhookId)));
      return listed
        .filter(({ webhookId, state }) => state === 'active' && (turn.includesHeldUp || !heldUp.has(webhookId)))
        .slice(0, coveredAtOnce);
    },

    /**
     * Notes a claim: those of the covered webhooks that have no slot left, and those of which it
     * got nothing twice in a row, are held up. Once may be chance: another connection assigned slots
     * of the organization.
     */
    note(covered: readonly QueuedWebhook[], deliveries: readonly ClaimedDelivery[]): void {
      const claimed = new Set(deliveries.map(({ webhookId }) => webhookId));
      const full = new Set(deliveries.filter(({ isFull }) => isFull).map(({ webhookId }) => webhookId));
      const missedNow = new Set<string>();
      for (const { webhookId } of covered) {
        if (full.has(webhookId) || missed.has(webhookId)) heldUp.add(webhookId);
        else if (claimed.has(webhookId)) heldUp.delete(webhookId);
        else missedNow.add(webhookId);
      }
      missed = missedNow;
    },

    /** Moves on, behind the last webhook that needs no other look in this pass. */
    advance(turn: Turn, listed: readonly QueuedWebhook[], covered: readonly QueuedWebhook[]): void {
      const isCut = covered.length === coveredAtOnce && covered.at(-1) !== listed.at(-1);
      const last = isCut ? covered.at(-1) : listed.at(-1);
      const isEnd = last === undefined || (!isCut && listed.length < turn.atMost);
      place = isEnd ? beginning : last;
      if (isEnd && isFull) fullAt = performance.now();
    },
  };
}
