import path from 'node:path';
import { printable, startCommand } from '#runtime/command-line.ts';
import { StartupError, UsageError } from '#runtime/errors.ts';
import { readCertificates, readSecretFile } from '../files.ts';
import { certify, UnreachableError } from './certify.ts';
import { readOptions, usage } from './options.ts';
import { countResults, reportText } from './report.ts';
import { readStateAt } from './state.ts';

/**
 * `npm run tool -- certify`: runs every scenario against a receiver. Exit code 0 when nothing failed, 1 when
 * something did, 2 for a wrong call and when nothing answers.
 */
async function main(args: string[]): Promise<void> {
  const { url, secretFile, caFile, stateUrl, json, ...options } = readOptions(args);
  const ca = caFile === null ? null : readCertificates(fromCaller(caFile));
  const report = await certify({
    ...options,
    secrets: secretFile === null ? options.secrets : [readSecretFile(fromCaller(secretFile))],
    target: { url, ca },
    readState: stateUrl === null ? null : readStateAt({ url: stateUrl, ca }),
  });
  console.log(json ? JSON.stringify({ url, ...countResults(report), ...report }, null, 2) : reportText(report));
  process.exitCode = report.ok ? 0 : 1;
}

/** npm changes to the project's folder; files are relative to the caller's. */
const fromCaller = (file: string): string => path.resolve(process.env.INIT_CWD ?? process.cwd(), file);

startCommand({ usage });
try {
  await main(process.argv.slice(2));
} catch (error) {
  const isExpected = [UsageError, StartupError, UnreachableError].some((kind) => error instanceof kind);
  const message = error instanceof Error ? error.message : String(error);
  console.error(isExpected ? printable(message) : `certify failed with an internal error: ${message.split('\n')[0]}`);
  if (error instanceof UsageError) console.error('See npm run tool -- certify --help');
  process.exitCode = 2;
}
