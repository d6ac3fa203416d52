/** Other writers changed rows between the checks and the writes; the file is correct. */
const interfered = new Set(['40001', '40P01', '23505', '23503', '23514']);

const sentences: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder, not a file',
  EACCES: 'it may not be read by you; change its rights',
  ECONNREFUSED: 'no PostgreSQL answers at DATABASE_URL; is it running? npm start brings one up',
  ENOTFOUND: 'the host of DATABASE_URL is not known',
  '25006': 'DATABASE_URL leads to a server that is read-only, such as a standby; run it again at the primary',
  '53300': 'PostgreSQL has no free connection; run it again later',
  '57P03': 'PostgreSQL is starting or stopping; run it again in a moment',
  '28P01': 'PostgreSQL refuses the user or password of DATABASE_URL',
  '28000': 'PostgreSQL refuses the user of DATABASE_URL',
  '3D000': 'the database named by DATABASE_URL does not exist',
  '42P01': 'the database has no tables of org-api, or old ones; run npm run tool -- migrate first',
  '42883': 'the database has no functions of org-api, or old ones; run npm run tool -- migrate first',
  '42703': 'the database has an older schema; run npm run tool -- migrate first',
  '42501':
    'the login of DATABASE_URL lacks the right: it takes the owner or the platform’s login, and ' +
    'for --backfill one that may act as org_api_backfill',
  '57014': 'PostgreSQL cancelled the statement',
  '53100': 'PostgreSQL’s disk is full',
};

/** Returns why a file was not imported for a reason outside its content, and the remedy. */
export function failureSentence(file: string, error: unknown): string {
  const code = codeOf(error);
  if (interfered.has(code))
    return (
      `${file}: something else changed the same rows meanwhile (${code}); nothing of the file was imported, ` +
      'run it again'
    );
  const said = sentences[code] ?? `${code === '' ? messageOf(error) : `the database or the file failed with ${code}`}`;
  return `${file}: ${said}. Nothing of it was imported.`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
