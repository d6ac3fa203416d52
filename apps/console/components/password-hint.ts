import { passwordMaxLength, passwordMinLength } from '#domain/identity/limits.ts';

/** What a new password must be, as its field says. */
export const passwordHint = `${passwordMinLength} to ${passwordMaxLength} characters of any kind; a few words that you remember are best. Common passwords and your names aren’t allowed.`;
