import { type Kind, kindPlurals } from './format.ts';

/** Reports the progress of an import. `stop` may be called twice. */
export interface Progress {
  /**
   * Begins a new stage. While it runs without a separate line, it is repeated with its duration.
   */
  stage(name: string): void;
  line(text: string): void;
  stop(): void;
}

const lineEveryMs = 1_000;
const silenceMaxMs = 2_000;

export function stageProgress(report: (line: string) => void): Progress {
  let current = '';
  let stageSince = performance.now();
  let lineSince = stageSince;
  const line = (text: string) => {
    lineSince = performance.now();
    report(text);
  };
  const ticker = setInterval(() => {
    const now = performance.now();
    if (current !== '' && now - lineSince >= silenceMaxMs - 100)
      line(`still ${current} (${Math.round((now - stageSince) / 1_000)} s)`);
  }, lineEveryMs);
  return {
    line,
    stage(name) {
      current = name;
      stageSince = performance.now();
      line(name);
    },
    stop: () => clearInterval(ticker),
  };
}

/** Reports once a second what was read so far. */
export function readingProgress(counts: ReadonlyMap<Kind, number>, progress: Progress): (bytes: number) => void {
  let reportedAt = performance.now();
  let total = 0;
  progress.stage('reading');
  return (bytes) => {
    total += bytes;
    if (performance.now() - reportedAt < lineEveryMs) return;
    reportedAt = performance.now();
    const items = [...counts].map(([kind, count]) => `${count} ${kindPlurals[kind]}`).join(', ');
    progress.line(`read ${(total / 1e6).toFixed(1)} MB: ${items || 'no whole object yet'}`);
  };
}
