/** A problem of a document, without a value of it, at a path such as `$.organizations[0].name`. */
export interface Problem {
  path: string;
  problem: string;
}

/** How many problems are kept and shown. The rest are only counted. */
export const listedProblemsMax = 200;

/**
 * A document that may not be imported. The message lists its `problems`, the first {@link
 * listedProblemsMax} of `total`.
 */
export class InvalidDocumentError extends Error {
  readonly fileName: string;
  readonly problems: readonly Problem[];
  readonly total: number;

  constructor(fileName: string, problems: readonly Problem[], total: number) {
    const lines = problems.map(({ path, problem }) => `\n  ${path}: ${problem}`);
    if (total > problems.length) lines.push(`\n  … and ${total - problems.length} more`);
    const counted = total === 1 ? '1 problem' : `${total} problems`;
    super(`${fileName} was rejected with ${counted}; nothing of it was imported:${lines.join('')}`);
    this.name = 'InvalidDocumentError';
    this.fileName = fileName;
    this.problems = problems;
    this.total = total;
  }
}

/** Why reading cannot continue. Becomes a problem of an {@link InvalidDocumentError}. */
export class UnreadableDocumentError extends Error {
  readonly problem: Problem;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`${path}: ${problem}`, options);
    this.name = 'UnreadableDocumentError';
    this.problem = { path, problem };
  }
}

/** The problems found so far, bounded. */
export class ProblemList {
  readonly #listed: Problem[] = [];
  #total = 0;

  get listed(): readonly Problem[] {
    return this.#listed;
  }

  get total(): number {
    return this.#total;
  }

  add(path: string, problem: string): void {
    this.#total += 1;
    if (this.#listed.length < listedProblemsMax) this.#listed.push({ path, problem });
  }

  /** Counts problems that are not listed. */
  countMore(problems: number): void {
    this.#total += problems;
  }
}

/** Returns a path one key deeper: `.key` or `["…"]`, shortened when it is long. */
export function keyPath(parent: string, key: string): string {
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(key)) return `${parent}.${key}`;
  return `${parent}[${JSON.stringify(key.length > 64 ? `${key.slice(0, 64)}…` : key)}]`;
}
