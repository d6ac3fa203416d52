import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';

/** A loop whose runs end when the test decides. */
function setupLoop(everyMs = 1) {
  const runs: { end: () => void; signal: AbortSignal }[] = [];
  const errors: unknown[] = [];
  const loop = new IntervalLoop({
    run: (signal) => new Promise<void>((resolve) => runs.push({ end: resolve, signal })),
    everyMs,
    onError: (cause) => errors.push(cause),
  });
  onTestFinished(() => {
    for (const { end } of runs) end();
  });
  return { loop, runs, errors };
}

const rest = () => wait(20);

it('a run starts only after the previous one has ended', async () => {
  const { loop, runs } = setupLoop();
  const started = loop.start();
  await rest();
  expect(runs).toHaveLength(1);
  runs[0]?.end();
  await started;
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.end();
  await loop.stop();
});

it('a run that is requested during another follows it at once, and only once', async () => {
  const { loop, runs } = setupLoop(3_600_000);
  const started = loop.start();
  loop.runNow();
  loop.runNow();
  runs[0]?.end();
  await started;
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.end();
  await rest();
  expect(runs).toHaveLength(2);
  loop.runNow();
  expect(runs).toHaveLength(3);
});

it('stop aborts the signal, waits for the current run and starts no other', async () => {
  const { loop, runs } = setupLoop();
  await loop.stop();
  loop.runNow();
  expect(runs).toHaveLength(0);
  void loop.start();
  loop.runNow();
  let hasStopped = false;
  const stopped = loop.stop().then(() => {
    hasStopped = true;
  });
  await rest();
  expect(hasStopped).toBe(false);
  expect(runs[0]?.signal.aborted).toBe(true);
  runs[0]?.end();
  await Promise.all([stopped, loop.stop()]);
  loop.runNow();
  await rest();
  expect(runs).toHaveLength(1);
});

it('a failed run is reported and does not end the loop', async () => {
  const errors: unknown[] = [];
  let runs = 0;
  const loop = new IntervalLoop({
    run: () => {
      runs += 1;
      throw new Error(`run ${runs}`);
    },
    everyMs: 1,
    onError: (cause) => errors.push(cause),
  });
  await loop.start();
  await expect.poll(() => runs).toBeGreaterThan(2);
  await loop.stop();
  expect(errors).toHaveLength(runs);
});
