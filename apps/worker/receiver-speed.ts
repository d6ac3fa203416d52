import type { Pool } from 'pg';
import { recordSpeedSql } from '#domain/db/statements/concurrency-slots.ts';

/**
 * A webhook becomes slow above the one mean and quick again below the other: one in between stays
 * what it is.
 */
const slowAboveMs = 3_000;
const quickBelowMs = 1_000;
/**
 * How much the last attempt counts beside those before it: one of 10 s alone makes no webhook slow.
 */
const lastAttemptWeight = 0.2;
/** The mean counts from so many attempts on. */
const attemptsAtLeast = 3;
/** So many attempts in a row that last longer than `slowAboveMs`, ended or not, make it slow. */
const slowInARowAtLeast = 2;
/** Webhooks that are remembered; past that, the one that was first seen is removed. */
const webhooksAtMost = 10_000;

interface Speed {
  meanMs: number;
  attempts: number;
  /** The latest attempts that lasted longer than `slowAboveMs`. */
  slowInARow: number;
  /** Attempts under way for longer than that. */
  lingering: number;
  /** As this process last recorded it; null before that. */
  isSlow: boolean | null;
}

interface WebhookKey {
  organizationId: string;
  webhookId: string;
}

/**
 * Keeps an exponentially weighted mean of how long each webhook's attempts take, and records when a
 * webhook becomes slow or quick again: slow ones go to the slow queue, also when they accept
 * everything.
 *
 * The means live in this process and are its own sample: written for each attempt they would make
 * one hot row of every busy webhook. The database hears of changes alone, and says nothing back, so
 * a worker that starts measures again.
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

  /** Records what the webhook's attempts show, unless that is on record. Never rejects. */
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
     * Makes one attempt, and returns what it returns. An attempt counts as slow before it ends:
     * webhooks that share the prompt slots of an organization would otherwise hold them for longer,
     * and all end and begin together.
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

    /** Adds the duration of an ended attempt. Resolves once a change that follows is recorded. */
    async record(webhook: WebhookKey, durationMs: number): Promise<void> {
      const speed = speedOf(webhook.webhookId);
      speed.meanMs += (speed.attempts === 0 ? 1 : lastAttemptWeight) * (durationMs - speed.meanMs);
      speed.attempts += 1;
      speed.slowInARow = durationMs > slowAboveMs ? speed.slowInARow + 1 : 0;
      await save(webhook, speed);
    },
  };
}

/** Null while it is undecided. */
function conclude({ meanMs, attempts, slowInARow, lingering }: Speed): boolean | null {
  if (slowInARow + lingering >= slowInARowAtLeast) return true;
  if (attempts < attemptsAtLeast) return null;
  if (meanMs > slowAboveMs) return true;
  return meanMs < quickBelowMs ? false : null;
}
