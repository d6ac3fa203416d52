import type { ClaimedDelivery, QueuedWebhook } from './sql/claim.ts';

type Position = Pick<QueuedWebhook, 'organizationId' | 'webhookId'>;

/** Webhooks that one step lists, and selects for one claim: a claim of 10,000 webhooks took 180 ms instead of 4. */
export const listedAtOnce = 512;
const selectedAtOnce = 64;

const nil = '00000000-0000-0000-0000-000000000000';
const beginning = { organizationId: nil, webhookId: nil };

/**
 * Reaches every waiting webhook: it goes through pages of them in the order of their ids, selects a
 * bounded number of a page in each step until all others are skipped, and then begins again.
 *
 * A webhook whose bound of posts a second leaves none is passed, and tried as soon as it leaves one, because every
 * step lists it again. A webhook without a slot left, or of which claims got nothing twice, is saturated and skipped;
 * once may be chance, because another connection assigned slots of the organization. It is tried once
 * more when it may have a slot (`retry`), and every `retryAllEveryMs`, because of other workers.
 */
export class Scan {
  readonly #retryAllEveryMs: number;
  /** How often claims got nothing of a webhook, by its id. */
  readonly #misses = new Map<string, { organizationId: string; times: number }>();
  /** Organizations to retry since the last step; null: all. A claim in progress may miss them. */
  readonly #retried = new Set<string | null>();
  #allRetriedAt = Number.NEGATIVE_INFINITY;
  #position: Position = beginning;
  /** The webhooks of this page that were selected. */
  readonly #tried = new Set<string>();

  constructor({ retryAllEveryMs }: { retryAllEveryMs: number }) {
    this.#retryAllEveryMs = retryAllEveryMs;
  }

  /** Webhooks of this organization, null: of all, may have a slot: the next claims try each once. */
  retry(organizationId: string | null): void {
    this.#retried.add(organizationId);
  }

  /** Returns the webhook after which the next step lists. */
  next(): Position {
    if (this.#position === beginning && this.#tried.size === 0) {
      this.#allRetriedAt = Math.min(this.#allRetriedAt, performance.now()); // the pass that retried all has ended
      if (performance.now() - this.#allRetriedAt > this.#retryAllEveryMs) {
        this.#retried.add(null);
        this.#allRetriedAt = Number.POSITIVE_INFINITY;
      }
    }
    const missed = this.#retried.size === 0 ? [] : [...this.#misses.values()];
    for (const miss of missed) if (this.#retried.has(null) || this.#retried.has(miss.organizationId)) miss.times = 1;
    this.#retried.clear();
    return this.#position;
  }

  /** Returns webhooks of the page `listed` to claim. The next step lists the page after it when none is left. */
  select(listed: readonly QueuedWebhook[]): QueuedWebhook[] {
    const next = listed[listedAtOnce - 1] ?? beginning;
    // All that wait are listed, so others need not be remembered.
    if (this.#position === next) {
      const waiting = new Set(listed.map(({ webhookId }) => webhookId));
      for (const webhookId of this.#misses.keys()) if (!waiting.has(webhookId)) this.#misses.delete(webhookId);
    }
    // Claims got nothing because of its bound, and no end of an attempt shows when that leaves a post.
    for (const { webhookId, mustWait } of listed) if (mustWait) this.#misses.delete(webhookId);
    const isUntried = (id: string) => !this.#tried.has(id) && (this.#misses.get(id)?.times ?? 0) < 2;
    const untried = listed.filter(
      ({ webhookId, state, mustWait }) => state === 'active' && !mustWait && isUntried(webhookId),
    );
    // From a random one on: the first of a page would get each slot that becomes free, and the last none.
    const from = Math.floor(Math.random() * untried.length);
    const selected = [...untried.slice(from), ...untried.slice(0, from)].slice(0, selectedAtOnce);
    for (const { webhookId } of selected) this.#tried.add(webhookId);
    if (selected.length < untried.length) return selected;
    this.#tried.clear();
    this.#position = next;
    return selected;
  }

  /**
   * Notes a claim; a webhook that has no slot left after it is saturated at once. `isAtLimit`: it got as
   * many as this process may claim, so others may have a slot.
   */
  note(selected: readonly QueuedWebhook[], deliveries: readonly ClaimedDelivery[], isAtLimit: boolean): void {
    const claimed = new Map(deliveries.map(({ webhookId, isFull }) => [webhookId, isFull]));
    for (const { organizationId, webhookId } of selected) {
      const isFull = claimed.get(webhookId);
      if (isFull === undefined && isAtLimit) continue;
      const times = isFull ? 2 : (this.#misses.get(webhookId)?.times ?? 0) + 1;
      if (isFull === false) this.#misses.delete(webhookId);
      else this.#misses.set(webhookId, { organizationId, times });
    }
  }
}
