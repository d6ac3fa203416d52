import { IdentityRefused } from './refused.ts';

/**
 * An address as people type it, without blanks around it; the domain's own form is PostgreSQL's
 * lower case. @throws IdentityRefused `email_malformed`
 */
export function assertEmail(text: string): string {
  const email = text.trim();
  if (/^[^\s@]+@[^\s@]+$/.test(email) && email.length <= 254) return email;
  throw new IdentityRefused('email_malformed', 'That is no e-mail address; it looks like ada@example.org.');
}
