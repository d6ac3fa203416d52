import { parseArgs } from 'node:util';
import { UsageError } from '#runtime/errors.ts';
import type { ImportOptions } from './document/import-file.ts';

export interface Flags {
  files: string[];
  json: boolean;
  options: Pick<ImportOptions, 'today' | 'backfill' | 'dryRun' | 'complete' | 'ending' | 'list'>;
}

/** @throws UsageError */
export function readFlags(): Flags {
  const { values, positionals } = parse();
  const { today, backfill, complete, json, 'dry-run': dryRun } = values;
  const [ending, list] = [readCount('--ending', values.ending), readCount('--list', values.list)];
  reject(positionals.length === 0, 'Name at least one file to import');
  reject(list !== undefined && !dryRun, '--list needs --dry-run');
  reject(ending !== undefined && !complete, '--ending needs --complete');
  reject(ending !== undefined && positionals.length > 1, '--ending is the number of one file');
  reject(
    complete && !dryRun && ending === undefined,
    '--complete ends what a file leaves out: give the number that --dry-run --complete prints as --ending',
  );
  const counts = { ...(ending !== undefined && { ending }), ...(list !== undefined && { list }) };
  return { files: positionals, json, options: { today, backfill, dryRun, complete, ...counts } };
}

function parse() {
  const flag = { type: 'boolean', default: false } as const;
  const number = { type: 'string' } as const;
  try {
    return parseArgs({
      options: {
        'dry-run': flag,
        list: number,
        complete: flag,
        ending: number,
        today: flag,
        backfill: flag,
        json: flag,
      },
      allowPositionals: true,
    });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error}. See --help.`);
  }
}

function readCount(name: string, text: string | undefined): number | undefined {
  reject(text !== undefined && !/^\d{1,9}$/.test(text), `${name} must be a whole number`);
  return text === undefined ? undefined : Number(text);
}

function reject(isWrong: boolean, message: string): void {
  if (isWrong) throw new UsageError(`${message}. See --help.`);
}
