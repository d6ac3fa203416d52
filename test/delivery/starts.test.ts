import { expect, it, vi } from 'vitest';
import { createStarts } from '#delivery/starts.ts';

it('reports each time a full queue is half empty, and not while it fills', async () => {
  const onFree = vi.fn();
  const releases: (() => void)[] = [];
  const start = () => new Promise<void>((resolve) => releases.push(resolve));
  const starts = createStarts({ start, slots: 1_000, onFree });
  const add = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const delivery = {
        organizationId: '',
        webhookId: '',
        eventId: String(n),
        run: 1,
        isDegraded: false,
        isFull: false,
        type: 'seat.given',
        dueAtMs: 0,
      } as const;
      starts.add({ delivery, requestedAtMs: Date.now(), claimedAtMs: Date.now() });
    }
  };
  /** Ends the starts that are under way, and those that follow them. */
  const startAll = async () => {
    while (starts.isBusy()) {
      for (const release of releases.splice(0)) release();
      await starts.drained();
    }
  };

  add(63);
  await startAll();
  expect(onFree).not.toHaveBeenCalled();
  for (const times of [1, 2]) {
    add(64);
    await startAll();
    expect(onFree).toHaveBeenCalledTimes(times);
    expect(starts.free().healthy).toBe(64);
  }
});
