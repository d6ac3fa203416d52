import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Metrics of an API about its memory and its connections. */
export interface Figures {
  heldBytes: number;
  /** The same by size: small, large. */
  heldBytesBySize: Record<string, number>;
  waiting: number;
  connections: number;
  /** Ended waits by result: admitted, rejected, gone. */
  waits: Record<string, number>;
  /** Closed connections by reason. */
  cut: Record<string, number>;
}

export async function readFigures(metricsUrl: string): Promise<Figures> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const series = [...text.matchAll(/^(org_(?:api|console)_\w+?)(?:\{(.*)\})? ([\d.e+]+)$/gm)];
  const sum = (name: RegExp) =>
    series.filter(([, of = '']) => name.test(of)).reduce((total, [, , , value]) => total + Number(value), 0);
  const byLabel = (name: RegExp, label: string) => {
    const figures: Record<string, number> = {};
    for (const [, of = '', labels = '', value] of series) {
      const [, name_ = ''] = new RegExp(`${label}="(\\w+)"`).exec(labels) ?? [];
      if (name.test(of)) figures[name_] = (figures[name_] ?? 0) + Number(value);
    }
    return figures;
  };
  return {
    heldBytes: sum(/_response_reserved_bytes$/),
    heldBytesBySize: byLabel(/_response_reserved_bytes$/, 'size'),
    waiting: sum(/_responses_waiting$/),
    connections: sum(/^org_(api|console)_connections$/),
    waits: byLabel(/_response_waits_total$/, 'end'),
    cut: byLabel(/_responses_cut_total$/, 'reason'),
  };
}

/** Waits until the metrics satisfy the condition; returns them. */
export async function untilFigures(
  metricsUrl: string,
  isSo: (figures: Figures) => boolean,
  atMostMs = 30_000,
): Promise<Figures> {
  const endsAt = performance.now() + atMostMs;
  for (;;) {
    const figures = await readFigures(metricsUrl);
    if (isSo(figures)) return figures;
    if (performance.now() > endsAt) throw new Error(`it did not come to that: ${JSON.stringify(figures)}`);
    await wait(50);
  }
}

/** Returns the memory that a process uses (MiB); Linux only. */
export const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
