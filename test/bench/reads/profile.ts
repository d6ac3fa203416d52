import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const functionsPerCategory = 5;
/** What takes less than this share of the time is left out. */
const leastShare = 0.005;

/** The profile that `node --cpu-prof` wrote to a folder when its process ended. */
export function findProfile(folder: string): string {
  const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) throw new Error(`node --cpu-prof left no profile in ${folder}`);
  return path.join(folder, file);
}

interface Category {
  micros: number;
  functions: Map<string, number>;
}

/**
 * Prints where a process spent its time itself, by origin of the code, in percent of the time that
 * it was not idle.
 */
export function printProfile(file: string): void {
  const { categories, busyMicros } = sumUp(JSON.parse(readFileSync(file, 'utf8')));
  const percent = (micros: number) => `${((100 * micros) / busyMicros).toFixed(1)} %`.padStart(7);
  const isWorthALine = (micros: number) => micros >= busyMicros * leastShare;
  for (const [name, { micros, functions }] of descending(categories, (category) => category.micros)) {
    if (!isWorthALine(micros)) break;
    console.log(`  ${percent(micros)}  ${name}`);
    for (const [place, own] of descending(functions, (each) => each).slice(0, functionsPerCategory)) {
      if (isWorthALine(own)) console.log(`           ${percent(own)}  ${place}`);
    }
  }
}

function sumUp({ nodes, samples, timeDeltas }: Profile): { categories: Map<string, Category>; busyMicros: number } {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const categories = new Map<string, Category>();
  let busyMicros = 0;
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame === undefined || frame.functionName === '(idle)') continue;
    const micros = timeDeltas[index] ?? 0;
    busyMicros += micros;
    const name = categoryOf(frame);
    const category = categories.get(name) ?? { micros: 0, functions: new Map() };
    categories.set(name, category);
    category.micros += micros;
    const place = frame.url
      ? `${frame.functionName || '(anonymous)'} ${path.basename(frame.url)}:${frame.lineNumber + 1}`
      : frame.functionName || '(anonymous)';
    category.functions.set(place, (category.functions.get(place) ?? 0) + micros);
  }
  return { categories, busyMicros };
}

function descending<V>(entries: Map<string, V>, weight: (value: V) => number): [string, V][] {
  return [...entries].sort((a, b) => weight(b[1]) - weight(a[1]));
}

/** `apps/api/pipeline.ts`, `npm pg`, `node http`, or V8's own name such as `(garbage collector)`. */
function categoryOf({ url, functionName }: Profile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native functions';
  const dependency = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (dependency !== undefined) return `npm ${dependency}`;
  if (url.startsWith('node:')) return `node ${/^node:(?:internal\/)?(\w+)/.exec(url)?.[1] ?? ''}`;
  return /\/(apps\/.*)$/.exec(url)?.[1] ?? url;
}
