/**
 * Does something at once and then every `everyMs`, one round at a time: a round that is still under
 * way is not overtaken. `start` resolves after the first; `stop` may be called twice and before
 * `start`, and waits for the round under way. `work` handles its own failures.
 */
export function createRounds(work: () => Promise<void>, everyMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> | null = null;

  function tick(): Promise<void> {
    round ??= work().finally(() => {
      round = null;
    });
    return round;
  }

  return {
    async start(): Promise<void> {
      timer = setInterval(tick, everyMs);
      await tick();
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await round;
    },
  };
}
