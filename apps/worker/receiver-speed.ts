import type { Pool } from 'pg';
import { recordSpeedSql } from '#domain/db/statements/concurrency-slots.ts';
import type { DeliveryKey } from '#workflows/deliver-event/types.ts';

/** A webhook becomes slow above the first mean and quick below the second. */
const slowAboveMs = 3_000;
const quickBelowMs = 1_000;
/** The weight of the last attempt in the mean. One attempt of 10 s makes no webhook slow. */
const lastAttemptWeight = 0.2;
/** The number of attempts from which the mean counts. */
const attemptsAtLeast = 3;
/** Consecutive attempts longer than `slowAboveMs`, ended or not, that make a webhook slow. */
const slowInARowAtLeast = 2;
/** How many webhooks are remembered; then the oldest entry is removed. */
const webhooksAtMost = 10_000;

interface Speed {
  meanMs: number;
  attempts: number;
  /** Consecutive latest attempts that lasted longer than `slowAboveMs`. */
  slowInARow: number;
  /** Attempts in progress for longer than that. */
  lingering: number;
  /** The class that this process last recorded; null before that. */
  isSlow: boolean | null;
}

type WebhookKey = Pick<DeliveryKey, 'organizationId' | 'webhookId'>;

/**
 * Keeps an exponentially weighted mean of the duration of each webhook's attempts, and records when
 * a webhook becomes slow or quick. Slow webhooks use the slow queue, also when they accept
 * everything.
 *
 * The means are in memory and sample this process only: written for each attempt, they would make a
 * hot row of every busy webhook. A restarted worker measures again.
 */
export function createReceiverSpeed(options: { pool: Pool; onError: (cause: unknown) => void }) {
  const { pool, onError } = options;
  const speeds = new Map<string, Speed>();

  function speedOf(webhookId: string): Speed {
    const known = speeds.get(webhookId);
    if (known !== undefined) return known;
    const speed: Speed = { meanMs: 0, attempts: 0, slowInARow: 0, lingering: 0, isSlow: null };
    speeds.set(webhookId, speed);
    for (const oldest of speeds.keys()) {
      if (speeds.size <= webhooksAtMost) break;
      speeds.delete(oldest);
    }
    return speed;
  }

  /** Records the class that the attempts show, unless it is recorded already. Never rejects. */
  async function save({ organizationId, webhookId }: WebhookKey, speed: Speed): Promise<void> {
    const isSlow = conclude(speed);
    if (isSlow === null || isSlow === speed.isSlow) return;
    const before = speed.isSlow;
    speed.isSlow = isSlow;
    try {
      await pool.query(recordSpeedSql, [organizationId, webhookId, isSlow]);
    } catch (cause) {
      speed.isSlow = before; // the next attempt tries again
      onError(cause);
    }
  }

  return {
    /**
     * Runs one attempt. It counts as slow before it ends: otherwise webhooks that share the prompt
     * slots of an organization would hold them longer, and all would end and begin together.
     */
    async watch<Outcome>(webhook: WebhookKey, attempt: () => Promise<Outcome>): Promise<Outcome> {
      const speed = speedOf(webhook.webhookId);
      let isLingering = false;
      const timer = setTimeout(() => {
        isLingering = true;
        speed.lingering += 1;
        void save(webhook, speed);
      }, slowAboveMs);
      try {
        return await attempt();
      } finally {
        clearTimeout(timer);
        if (isLingering) speed.lingering -= 1;
      }
    },

    /** Adds the duration of an ended attempt. Resolves when a resulting change is recorded. */
    async record(webhook: WebhookKey, durationMs: number): Promise<void> {
      const speed = speedOf(webhook.webhookId);
      speed.meanMs += (speed.attempts === 0 ? 1 : lastAttemptWeight) * (durationMs - speed.meanMs);
      speed.attempts += 1;
      speed.slowInARow = durationMs > slowAboveMs ? speed.slowInARow + 1 : 0;
      await save(webhook, speed);
    },
  };
}

/** Returns null while it is undecided. */
function conclude({ meanMs, attempts, slowInARow, lingering }: Speed): boolean | null {
  if (slowInARow + lingering >= slowInARowAtLeast) return true;
  if (attempts < attemptsAtLeast) return null;
  if (meanMs > slowAboveMs) return true;
  return meanMs < quickBelowMs ? false : null;
}
