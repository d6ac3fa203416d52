import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

interface Profile {
  /** On the system's monotonic clock (µs). */
  startTime: number;
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const functionsPerCategory = 5;
const differencesShown = 10;
/** Entries below this share of the time are left out. */
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

/** Self time of a process by origin of the code, in µs per response. */
export interface TimeByOrigin {
  micros: number;
  categories: Map<string, Category>;
}

/** A span of the system's monotonic clock (µs), and the number of responses in it. */
export interface ProfiledSpan {
  fromMicros: number;
  toMicros: number;
  responses: number;
}

/** Prints where a process spent its time, in µs (per response, if there are any) and in percent. */
export function printProfile({ micros: total, categories }: TimeByOrigin): void {
  const share = (micros: number) => `${micros.toFixed(1)} µs ${((100 * micros) / total).toFixed(1)} %`.padStart(16);
  const isWorthALine = (micros: number) => micros >= total * leastShare;
  for (const [name, { micros, functions }] of descending(categories, (category) => category.micros)) {
    if (!isWorthALine(micros)) break;
    console.log(`  ${share(micros)}  ${name}`);
    for (const [place, own] of descending(functions, (each) => each).slice(0, functionsPerCategory)) {
      if (isWorthALine(own)) console.log(`                    ${share(own)}  ${place}`);
    }
  }
}

/** Prints the origins in which one program spends the most time beyond another's. */
export function printDifferences(one: TimeByOrigin, other: TimeByOrigin): void {
  const differences = new Map<string, number>();
  for (const name of new Set([...one.categories.keys(), ...other.categories.keys()])) {
    differences.set(name, (one.categories.get(name)?.micros ?? 0) - (other.categories.get(name)?.micros ?? 0));
  }
  for (const [name, micros] of descending(differences, (each) => each).slice(0, differencesShown)) {
    console.log(`  ${micros.toFixed(1).padStart(7)} µs  ${name}`);
  }
}

const whole: ProfiledSpan = { fromMicros: 0, toMicros: Number.POSITIVE_INFINITY, responses: 1 };

/** Sums the samples of a span, without those in which the process was idle. */
export function sumUp(file: string, { fromMicros, toMicros, responses } = whole): TimeByOrigin {
  const { nodes, samples, timeDeltas, startTime }: Profile = JSON.parse(readFileSync(file, 'utf8'));
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const categories = new Map<string, Category>();
  let busyMicros = 0;
  let atMicros = startTime;
  for (const [index, id] of samples.entries()) {
    const micros = (timeDeltas[index] ?? 0) / responses;
    atMicros += timeDeltas[index] ?? 0;
    const frame = frames.get(id);
    if (frame === undefined || frame.functionName === '(idle)' || atMicros < fromMicros || atMicros > toMicros)
      continue;
    busyMicros += micros;
    const name = getCategory(frame);
    const category = categories.get(name) ?? { micros: 0, functions: new Map() };
    categories.set(name, category);
    category.micros += micros;
    const place = frame.url
      ? `${frame.functionName || '(anonymous)'} ${path.basename(frame.url)}:${frame.lineNumber + 1}`
      : frame.functionName || '(anonymous)';
    category.functions.set(place, (category.functions.get(place) ?? 0) + micros);
  }
  return { micros: busyMicros, categories };
}

function descending<V>(entries: Map<string, V>, weight: (value: V) => number): [string, V][] {
  return [...entries].sort((a, b) => weight(b[1]) - weight(a[1]));
}

/** `apps/api/gate.ts`, `npm pg`, `node http`, or V8's name such as `(garbage collector)`. */
function getCategory({ url, functionName }: Profile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native functions';
  const dependency = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (dependency !== undefined) return `npm ${dependency}`;
  if (url.startsWith('node:')) return `node ${/^node:(?:internal\/)?(\w+)/.exec(url)?.[1] ?? ''}`;
  return /\/(apps\/.*)$/.exec(url)?.[1] ?? url;
}
