import { canonicalEmail, findEmailProblem } from '../contract/email.ts';
import { IdentityError } from './errors.ts';

/** Returns the canonical form of an address to sign in with. @throws IdentityError `email_malformed` */
export function assertEmail(text: string): string {
  const problem = findEmailProblem(text);
  if (problem !== null) throw new IdentityError('email_malformed', `Enter ${problem}.`);
  return canonicalEmail(text);
}
