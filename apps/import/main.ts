import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { calledAs, startCommand } from '#runtime/command-line.ts';
import { describeFailure, findCode } from '#runtime/database-failure.ts';
import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import { type ImportConfig, readConfig } from './config.ts';
import { readBeginning } from './document/find-region.ts';
import { importFile, UncertainImportError } from './document/import-file.ts';
import type { Bytes } from './document/json-tokens.ts';
import { InvalidDocumentError } from './document/problems.ts';
import type { ImportResult } from './document/result.ts';
import { type Flags, readFlags } from './flags.ts';
import { resultText } from './result-text.ts';

/**
 * `npm run -s import -- [--dry-run] [--complete --ending N] [--today] [--backfill] FILE…`: imports files
 * one after another. Progress and errors go to standard error, results to standard output. Exit code 0,
 * 1 when a file was not imported, 2 for wrong use.
 */

const usage = `Usage: ${calledAs('npm run -s import --')} [options] FILE…

Imports organizations from files of the import format, each file whole or not at all; - reads standard input. A file
is opened and read once, so it may be a pipe. Where REGION is not set and several regions run here, a file names its
region in its first MiB.
The same file twice changes nothing.

  --dry-run    print what an import would change, and its events; write nothing
  --list N     with --dry-run: the first N changes, with ids and columns
  --complete   end what the lists of an organization leave out; needs --ending
  --ending N   how many objects may end: the number that --dry-run --complete prints
  --today      move every date by the whole days from the file's asOf to today
  --backfill   write in silence: history, of which no webhook shall hear
  --json       one JSON document on standard output
  --help       this text

DATABASE_URL and REGION say where to; without them, the development stack (ORG_API_STATE, .org-api).
`;

/** Returns the exit code. */
async function main(): Promise<number> {
  const flags = readFlags();
  const config = readConfig();
  const done: ImportResult[] = [];
  for (const file of flags.files) {
    const failure = await importOne(file, flags, config).then(
      (result) => {
        done.push(result);
        if (!flags.json) process.stdout.write(resultText(result));
        return null;
      },
      (error: unknown) => error,
    );
    if (failure !== null) return failed(flags, done, file, failure);
  }
  if (flags.json) process.stdout.write(`${JSON.stringify({ imported: done })}\n`);
  return 0;
}

async function importOne(file: string, flags: Flags, config: ImportConfig): Promise<ImportResult> {
  const { installations, callerFolder } = config;
  const [first] = installations;
  const opened = readBytes(file, callerFolder);
  const { installation, source } =
    installations.length === 1
      ? { installation: first, source: opened }
      : await selectInstallation(opened, installations);
  return importFile({
    server: installation.server,
    region: installation.region,
    source,
    fileName: file === '-' ? 'standard input' : path.basename(file),
    ...flags.options,
    report: (line) => process.stderr.write(`${line}\n`),
  });
}

/**
 * Chooses the installation of the file's region, or the first one, which rejects the file.
 *
 * @throws UsageError when the file names its region too late.
 */
async function selectInstallation(opened: Bytes, installations: ImportConfig['installations']) {
  const { region, isComplete, source } = await readBeginning(opened);
  if (region === null && !isComplete)
    throw new UsageError('It does not name its region in its first MiB: set REGION to say which one it is for.');
  return { installation: installations.find((each) => each.region === region) ?? installations[0], source };
}

/** Opens the file when it is read, so that a failure fails the read and not the process. */
async function* readBytes(file: string, callerFolder: string): AsyncGenerator<Uint8Array> {
  yield* file === '-' ? process.stdin : createReadStream(located(file, callerFolder));
}

/** A relative path refers to the caller's folder; npm has changed it. */
function located(file: string, callerFolder: string): string {
  const called = path.resolve(callerFolder, file);
  return existsSync(called) ? called : path.resolve(file);
}

/** Other writers changed rows between the checks and the writes; the file is correct. */
const conflicts = new Set(['23503', '23505', '23514']);

/** Returns why a file was not imported for a reason outside its content, and the remedy. */
function describeImportFailure(file: string, error: unknown): string {
  if (error instanceof UsageError) return `${file}: ${error.message}`;
  if (error instanceof UncertainImportError)
    return `${file}: ${describeFailure(error)} It may have been imported; then it changes nothing.`;
  const code = findCode(error);
  const isConflict = code !== null && conflicts.has(code);
  const reason = isConflict
    ? `Another transaction changed the same rows (${code}). Run the command again.`
    : describeFailure(error);
  return `${file}: ${reason} Nothing of it was imported.`;
}

function failed(flags: Flags, done: ImportResult[], file: string, error: unknown): number {
  const left = flags.files.slice(done.length + 1);
  process.stderr.write(
    `${error instanceof InvalidDocumentError ? error.message : describeImportFailure(file, error)}\n`,
  );
  if (done.length > 0)
    process.stderr.write(`Imported before it: ${done.map((result) => result.fileName).join(', ')}.\n`);
  if (left.length > 0) process.stderr.write(`Not tried any more: ${left.join(', ')}.\n`);
  if (flags.json) {
    const rejected =
      error instanceof InvalidDocumentError
        ? { file, total: error.total, problems: error.problems }
        : { file, total: 1, problems: [{ path: '$', problem: describeImportFailure(file, error) }] };
    process.stdout.write(`${JSON.stringify({ imported: done, rejected })}\n`);
  }
  return error instanceof UsageError ? 2 : 1;
}

startCommand({ usage });
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError || error instanceof InvalidSettingsError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
