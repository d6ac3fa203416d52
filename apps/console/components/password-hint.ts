import { passwordMaxLength, passwordMinLength } from '#domain/identity/limits.ts';

/** The rules for a new password, as its field shows them. */
export const passwordHint =
  `${passwordMinLength} to ${passwordMaxLength} characters. We recommend several words. ` +
  'Common passwords and your own names aren’t allowed.';
