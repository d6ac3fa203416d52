import { findEnrolment } from '#domain/identity/enrolment.ts';
import { enrolmentHours } from '#domain/identity/limits.ts';
import type { EnrolmentDetails } from '#domain/identity/types.ts';
import { linkButton } from '../../components/link.ts';
import { type Page, page } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import type { Visit } from '../../web/visit.ts';

/** Returns the person and organization of the opened link; null when it has expired. */
export async function findOpenEnrolment({ console, enrolmentToken }: Visit): Promise<EnrolmentDetails | null> {
  return enrolmentToken === null ? null : findEnrolment(console.em.fork(), enrolmentToken, console.now());
}

/**
 * Returns the page for a link that does not work. It is the same for an unknown, used, replaced or
 * expired link, and when its creator lost the permission.
 */
export function linkExpiredPage(): Page {
  return page({
    title: 'This link has expired',
    status: 410,
    body: html`<p>A link works once. An invitation works for ${enrolmentHours} hours, a link to recover an account for
      one hour. A link also stops working when a newer one is created, or when its creator loses the permission to
      invite you.</p>
      <p>Ask your organization for a new link.</p>
      <p class="actions">${linkButton('/sign-in', 'Sign in instead', 'secondary')}</p>`,
  });
}
