import { type Kind, kindPlurals } from './format.ts';

const lineEveryMs = 1_000;
const silenceMaxMs = 2_000;

/** Reports the progress of an import, line by line, until it is stopped. */
export class Progress {
  readonly #report: (line: string) => void;
  readonly #ticker = setInterval(() => this.#repeatStage(), lineEveryMs);
  #stage = '';
  #stageSince = performance.now();
  #lineSince = this.#stageSince;

  constructor(report: (line: string) => void) {
    this.#report = report;
  }

  line(text: string): void {
    this.#lineSince = performance.now();
    this.#report(text);
  }

  /** Begins a new stage. While it reports no line, its name is repeated with its duration. */
  stage(name: string): void {
    this.#stage = name;
    this.#stageSince = performance.now();
    this.line(name);
  }

  /** Can be called twice. */
  stop(): void {
    clearInterval(this.#ticker);
  }

  #repeatStage(): void {
    const now = performance.now();
    if (this.#stage !== '' && now - this.#lineSince >= silenceMaxMs - 100)
      this.line(`still ${this.#stage} (${Math.round((now - this.#stageSince) / 1_000)} s)`);
  }
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
