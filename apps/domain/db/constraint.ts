/** Returns the constraint that a statement violated, also within other errors; else null. */
export function brokenConstraint(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  if ('constraint' in error && typeof error.constraint === 'string') return error.constraint;
  return 'cause' in error ? brokenConstraint(error.cause) : null;
}
