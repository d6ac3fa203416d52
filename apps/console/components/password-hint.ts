import { passwordMaxLength, passwordMinLength } from '#domain/identity/limits.ts';

/** The rules for a new password, as its field shows them. */
export const passwordHint =
  `${passwordMinLength} to ${passwordMaxLength} characters of any kind; a few words that you remember are best. ` +
  'Common passwords and your names aren’t allowed.';
