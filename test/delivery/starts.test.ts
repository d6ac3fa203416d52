import { expect, it, onTestFinished, vi } from 'vitest';
import { Starts } from '#delivery/starts.ts';

/** Starts end at once; a first task comes with each reply, unless `hasFirstTask` is false. */
function arrange({ hasFirstTask = true, workerSlots = 1_000, replies = true } = {}) {
  const onFree = vi.fn();
  const starts = new Starts({
    start: () => (replies ? Promise.resolve(hasFirstTask) : new Promise(() => {})),
    workerSlots,
    onFree,
  });
  let count = 0;
  const createDelivery = (isDegraded: boolean) =>
    ({
      organizationId: '',
      webhookId: '',
      eventId: String(++count),
      run: 1,
      isDegraded,
      isFull: false,
      type: 'seat.given',
      dueAtMs: 0,
    }) as const;
  return {
    starts,
    onFree,
    add(deliveries: number, isDegraded = false) {
      const added = Array.from({ length: deliveries }, () => createDelivery(isDegraded));
      const at = Date.now();
      for (const delivery of added) starts.add({ delivery, requestedAtMs: at, claimedAtMs: at });
      return added;
    },
  };
}

it('allows more claims, and calls onFree, each time that half of its attempts have begun', async () => {
  const { starts, onFree, add } = arrange();
  for (const delivery of add(16)) starts.attemptStarted(delivery);
  expect(onFree).not.toHaveBeenCalled();
  for (const times of [1, 2]) {
    const deliveries = add(32);
    await starts.drained();
    for (const delivery of deliveries.slice(0, 15)) starts.attemptStarted(delivery);
    expect(starts.free().healthy).toBe(0); // started, and not begun
    expect(onFree).toHaveBeenCalledTimes(times - 1);
    starts.attemptStarted(deliveries[15] as (typeof deliveries)[number]);
    expect(onFree).toHaveBeenCalledTimes(times);
    expect(starts.free().healthy).toBe(16);
    for (const delivery of deliveries) starts.attemptStarted(delivery);
  }
});

it('allows more claims at once when first tasks do not come here, and counts their slots', async () => {
  const { starts, onFree, add } = arrange({ hasFirstTask: false, workerSlots: 40 });
  const deliveries = add(32);
  await starts.drained();
  expect(onFree).toHaveBeenCalledTimes(1);
  expect(starts.free().healthy).toBe(8);
  for (const delivery of deliveries) starts.attemptEnded(delivery);
  expect(starts.free().healthy).toBe(32);
});

// Starts that Temporal does not answer must not hold back all claims until they fail.
it('a start without a reply counts for two seconds, and uses its slot on', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { starts, add } = arrange({ replies: false, workerSlots: 40 });
  add(32);
  expect(starts.free().healthy).toBe(0);
  vi.advanceTimersByTime(2_001);
  expect(starts.free().healthy).toBe(8);
});

// A process without a processor claimed 32 more every two seconds, and all of them expired.
it('a first task that came counts until its attempt begins, or its reservation ends', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { starts, add } = arrange();
  const [first, ...others] = add(32);
  starts.attemptStarted(first as NonNullable<typeof first>); // before the reply
  await starts.drained();
  vi.advanceTimersByTime(2_001);
  for (const delivery of others.slice(0, 14)) starts.attemptStarted(delivery);
  expect(starts.free().healthy).toBe(0);
  starts.attemptStarted(others[14] as NonNullable<typeof first>);
  expect(starts.free().healthy).toBe(16);
  vi.advanceTimersByTime(8_000);
  expect(starts.free().healthy).toBe(32);
});

it('calls onFree when half of a full queue of degraded ones is left', async () => {
  const { starts, onFree, add } = arrange();
  add(4, true);
  await starts.drained();
  expect(onFree).not.toHaveBeenCalled();
  add(8, true);
  expect(starts.free()).toEqual({ healthy: 32, degraded: 0 });
  await starts.drained();
  expect(onFree).toHaveBeenCalledTimes(1);
});
