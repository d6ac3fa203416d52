const sentences: Record<string, string> = {
  ECONNREFUSED: 'PostgreSQL refuses connections at DATABASE_URL. Check that it runs; npm start starts one.',
  ENOTFOUND: 'The host of DATABASE_URL cannot be resolved.',
  ETIMEDOUT: 'PostgreSQL does not respond at DATABASE_URL.',
  '25006': 'DATABASE_URL leads to a server that is read-only, such as a standby. Run the command again at the primary.',
  '53300': 'PostgreSQL has no free connection. Run the command again later.',
  '57P03': 'PostgreSQL is starting or stopping. Run the command again in a moment.',
  '28P01': 'PostgreSQL refuses the user or password of DATABASE_URL.',
  '28000': 'PostgreSQL refuses the user of DATABASE_URL.',
  '3D000': 'The database named by DATABASE_URL does not exist.',
  '42P01': 'The database has no org-api tables, or an older schema. Run npm run tool -- migrate first.',
  '42703': 'The database has an older schema. Run npm run tool -- migrate first.',
  '42501': 'The login of DATABASE_URL lacks a permission for this command. Use the login of the owner.',
};

const interruptions: Record<string, string> = {
  '57014': 'PostgreSQL took too long and the statement was cancelled',
  '40P01': 'Another transaction changed the same rows. Run the command again',
};

/** Returns why a command failed: one sentence, without a value of any row. */
export function failureSentence(error: unknown, left = 'nothing was changed'): string {
  const code = codeOf(error);
  if (code !== null)
    return sentences[code] ?? `${interruptions[code] ?? `The database or the system failed with ${code}`}; ${left}.`;
  const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
  return `Internal error: ${message}.`;
}

/** Returns the code of an error, or of its cause. */
function codeOf(error: unknown): string | null {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (typeof error !== 'object' || error === null) return null;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : null;
}
