import { parseArgs } from 'node:util';
import { calledAs, startCommand } from '#runtime/command-line.ts';
import { findCode, findRemedy } from '#runtime/database-failure.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { readConfig } from './config.ts';
import { migrate } from './migrate.ts';

/**
 * `npm run tool -- migrate`: brings the database to the current schema and its logins up to date. It may
 * run twice, also at the same time. Exit code 0 when the schema is current, 1 when it is not, 2 for
 * a wrong call.
 */
startCommand({
  usage: `Usage: ${calledAs('npm run tool -- migrate')}

Brings the database of DATABASE_URL to the current schema, and the logins named by the settings up to date.

  --help   this text
`,
  read: () => parseArgs({ options: {} }),
});
try {
  const config = readConfig();
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  const { applied, current } = await migrate({ ...config, report });
  const logins = config.logins.map((login) => login.role).join(', ') || 'none';
  process.stdout.write(
    `${applied.length === 0 ? 'Nothing to apply' : `Applied ${applied.length}`}; the schema is ${current}. ` +
      `Logins brought up to date: ${logins}.\n`,
  );
} catch (error) {
  const reason =
    error instanceof InvalidSettingsError
      ? error.message
      : `${describeReason(error)} What was not applied changed nothing; fix that and run it again.`;
  process.stderr.write(`The migration did not run: ${reason}\n`);
  process.exitCode = 1;
}

/** The text of a migration that failed says which one it was, and quotes no row. */
function describeReason(error: unknown): string {
  const text = error instanceof Error ? ` (${error.message.split('\n')[0]})` : '';
  return findRemedy(error) ?? `PostgreSQL answered ${findCode(error) ?? 'an error'}${text}.`;
}
