import { setTimeout as wait } from 'node:timers/promises';
import type { Limiter } from '../../../apps/api/limiter/limiter.ts';

/**
 * Resolves when Redis decides. `start` waits for it for a second, which a busy machine may miss; the
 * limiter then counts alone for a moment.
 */
export async function waitUntilRedisDecides(limiter: Limiter): Promise<void> {
  while (limiter.mode !== 'redis') await wait(10);
}
