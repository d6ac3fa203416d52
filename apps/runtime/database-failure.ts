import { isServerUnavailable } from '#domain/db/driver/errors.ts';

/** What is wrong with a file and what to do, by the code of a system call. */
const fileSentences: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file.',
  EISDIR: 'It is a folder, not a file.',
  EACCES: 'You may not read the file. Change its rights.',
};

/** The same with a database, by SQLSTATE or by the code of a system call of its connection. */
const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'No PostgreSQL answers at DATABASE_URL. Check that it runs.',
  ENOTFOUND: 'The host of DATABASE_URL cannot be resolved.',
  ETIMEDOUT: 'PostgreSQL does not respond at DATABASE_URL.',
  '08P01':
    'DATABASE_URL leads to a pooler, such as PgBouncer, whose sessions lack the parameters that they ask for. Name ' +
    'PostgreSQL itself.',
  '25006': 'DATABASE_URL leads to a server that is read-only, such as a standby. Run the command again at the primary.',
  '28000': 'PostgreSQL rejects the user of DATABASE_URL.',
  '28P01': 'PostgreSQL rejects the user or password of DATABASE_URL.',
  '3D000': 'The database named by DATABASE_URL does not exist.',
  '40001': 'Another transaction changed the same rows. Run the command again.',
  '40P01': 'Another transaction changed the same rows. Run the command again.',
  '42501': 'The login of DATABASE_URL lacks a permission for this command. Use the login of the owner.',
  '42703': 'The database has an older schema. Run node apps/migrate/main.ts first.',
  '42883': 'The database has no org-api functions, or an older schema. Run node apps/migrate/main.ts first.',
  '42P01': 'The database has no org-api tables, or an older schema. Run node apps/migrate/main.ts first.',
  '53100': 'PostgreSQL’s disk is full.',
  '53300': 'PostgreSQL has no free connection. Run the command again later.',
  '55P03':
    'Another transaction has a lock that this command needs, and did not end in time. Find it in pg_stat_activity, ' +
    'by pg_blocking_pids.',
  '57014': 'PostgreSQL took too long and the statement was cancelled.',
  '57P03': 'PostgreSQL is starting or stopping. Run the command again in a moment.',
};

/** For every other error that says so. */
const unavailableSentence =
  'PostgreSQL ended the connection, or does not respond at DATABASE_URL. Run the command again in a moment.';

/** Returns what is wrong with a database or a file, and the remedy; null for a failure without one. */
export function findRemedy(error: unknown, setting = 'DATABASE_URL'): string | null {
  const code = findCode(error) ?? '';
  const file = isConnection(error) ? undefined : fileSentences[code];
  const sentence = file ?? sentences[code] ?? (isServerUnavailable(error) ? unavailableSentence : null);
  return sentence?.replace('DATABASE_URL', setting) ?? null;
}

/**
 * Returns why a command failed, in sentences. They name a code rather than the text of a database,
 * which can quote a row's value.
 *
 * @param setting - the one that names the database.
 */
export function describeFailure(error: unknown, setting = 'DATABASE_URL'): string {
  const remedy = findRemedy(error, setting);
  if (remedy !== null) return remedy;
  const code = findCode(error);
  if (code !== null) return `The database or the system failed with ${code}.`;
  return `Internal error: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}.`;
}

/** A Unix socket, too, may not exist. */
const isConnection = (error: unknown): boolean =>
  error instanceof Error && (('syscall' in error && error.syscall === 'connect') || isConnection(error.cause));

/** Returns the code of an error, of the first of several, or of its cause; null for none. */
export function findCode(error: unknown): string | null {
  if (error instanceof AggregateError) return findCode(error.errors[0]);
  if (typeof error !== 'object' || error === null) return null;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? findCode(error.cause) : null;
}
