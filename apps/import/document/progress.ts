import { type Kind, kindPlurals } from './format.ts';

export type Progress = ReturnType<typeof stageProgress>;

const lineEveryMs = 1_000;
const silenceMaxMs = 2_000;

/** Reports the progress of an import. `stop` may be called twice. */
export function stageProgress(report: (line: string) => void) {
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
    /** Begins a new stage. While it reports no line, its name is repeated with its duration. */
    stage(name: string): void {
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
