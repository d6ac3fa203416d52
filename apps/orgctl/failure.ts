const sentences: Record<string, string> = {
  ECONNREFUSED: 'No PostgreSQL answers at DATABASE_URL; is it running? npm start brings one up.',
  ENOTFOUND: 'The host of DATABASE_URL is not known.',
  ETIMEDOUT: 'PostgreSQL does not answer at DATABASE_URL.',
  '28P01': 'PostgreSQL refuses the user or password of DATABASE_URL.',
  '28000': 'PostgreSQL refuses the user of DATABASE_URL.',
  '3D000': 'The database named by DATABASE_URL does not exist.',
  '42P01': 'The database has no tables of org-api, or old ones; run npm run migrate first.',
  '42703': 'The database has an older schema; run npm run migrate first.',
  '42501': 'The login of DATABASE_URL lacks the right to do this; it takes the owner’s or the console’s.',
};

const interruptions: Record<string, string> = {
  '57014': 'PostgreSQL took too long and the statement was cancelled',
  '40P01': 'Something else changed the same rows at that moment; do it again',
};

/**
 * Returns why a command failed: one sentence, without a value of any row. `left` says what is in
 * the database now.
 */
export function failureSentence(error: unknown, left = 'nothing was changed'): string {
  const code = codeOf(error);
  if (code !== null)
    return sentences[code] ?? `${interruptions[code] ?? `The database or the system failed with ${code}`}; ${left}.`;
  const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
  return `This failed, which is an internal error: ${message}.`;
}

/** Returns the code of an error, or of its cause. */
function codeOf(error: unknown): string | null {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (typeof error !== 'object' || error === null) return null;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : null;
}
