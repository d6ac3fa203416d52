import { expect, it, vi } from 'vitest';
import { createStarts } from '#delivery/starts.ts';

const deliveryOf = (eventId: string, isDegraded = false) =>
  ({
    organizationId: '',
    webhookId: '',
    eventId,
    run: 1,
    isDegraded,
    isFull: false,
    type: 'seat.given',
    dueAtMs: 0,
  }) as const;

/** Starts end at once; a first task comes with each reply, unless `isHere` is false. */
function arrange({ isHere = true } = {}) {
  const onFree = vi.fn();
  const starts = createStarts({ start: async () => isHere, slots: 1_000, onFree });
  return {
    starts,
    onFree,
    add(count: number, isDegraded = false) {
      const deliveries = Array.from({ length: count }, (_, n) => deliveryOf(`${performance.now()}/${n}`, isDegraded));
      const at = Date.now();
      for (const delivery of deliveries) starts.add({ delivery, requestedAtMs: at, claimedAtMs: at });
      return deliveries;
    },
  };
}

it('reports each time that it could take no more and half of its attempts have begun', async () => {
  const { starts, onFree, add } = arrange();
  for (const delivery of add(31)) starts.attemptStarted(delivery);
  expect(onFree).not.toHaveBeenCalled();
  for (const times of [1, 2]) {
    const deliveries = add(32);
    await starts.drained();
    expect(starts.free().healthy).toBe(0); // started, and not begun
    for (const delivery of deliveries.slice(0, 15)) starts.attemptStarted(delivery);
    expect(onFree).toHaveBeenCalledTimes(times - 1);
    for (const delivery of deliveries.slice(15)) starts.attemptStarted(delivery);
    expect(onFree).toHaveBeenCalledTimes(times);
    expect(starts.free().healthy).toBe(32);
  }
});

it('takes more at once when the first tasks do not come here, or starts fail', async () => {
  const { starts, onFree, add } = arrange({ isHere: false });
  add(32);
  await starts.drained();
  expect(onFree).toHaveBeenCalledTimes(1);
  expect(starts.free().healthy).toBe(32);
});

it('reports that a queue of degraded ones that was full is empty', async () => {
  const { starts, onFree, add } = arrange();
  add(7, true);
  await starts.drained();
  expect(onFree).not.toHaveBeenCalled();
  add(8, true);
  expect(starts.free()).toEqual({ healthy: 32, degraded: 0 });
  await starts.drained();
  expect(onFree).toHaveBeenCalledTimes(1);
});
