import type { Scope } from '#domain/contract/scopes.ts';
import { copyable, shownOnce } from '../../components/secret.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/**
 * A read that each scope opens, in the order in which one is shown: what follows
 * `/v1/orgs/{orgId}`.
 */
export const firstReads: readonly (readonly [scope: Scope, path: string])[] = [
  ['org.read', ''],
  ['org.clients.read', '/clients'],
  ['org.members.read', '/members'],
  ['org.billing.manage', '/seats'],
  ['org.analytics.read', '/outcomes'],
  ['org.roles.read', '/roles'],
  ['org.referrals.manage', '/referral-codes'],
];

/**
 * A line for a terminal that reads something the key may read. In double quotes, which the shells
 * of Windows know too.
 */
export function curlLine(parts: { apiUrl: string; organizationId: string; key: string; scopes: readonly string[] }) {
  const { apiUrl, organizationId, key, scopes } = parts;
  const path = firstReads.find(([scope]) => scopes.includes(scope))?.[1] ?? '';
  return `curl -H "Authorization: Bearer ${key}" ${apiUrl.replace(/\/$/, '')}/v1/orgs/${organizationId}${path}`;
}

/** A new key, this once, and what to do with it first. */
export function newKey(visit: MemberVisit, created: { key: string; scopes: readonly string[] }): Html {
  const { apiUrl } = visit.console;
  const line = curlLine({ apiUrl, organizationId: visit.organization.organizationId, ...created });
  return html`${shownOnce({
    label: 'API key',
    value: created.key,
    advice: 'Put it where your system keeps its secrets, never into code, a ticket or a chat.',
  })}
  <section aria-labelledby="first-call"><h2 id="first-call">Try it</h2>
    <p>Paste this into a terminal (in the PowerShell of Windows write <code>curl.exe</code>). It answers in JSON.</p>
    ${copyable('curl line', line, { multiline: true })}
    <p><a href="${`${apiUrl.replace(/\/$/, '')}/docs`}" rel="noreferrer">All reads, in the reference</a></p>
  </section>`;
}
