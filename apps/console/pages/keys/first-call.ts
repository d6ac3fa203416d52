import type { Scope } from '#domain/contract/scopes.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { copyable, shownOnce } from '../../components/secret.ts';
import { detailList } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type MemberVisit, referenceUrl } from '../../web/visit.ts';

/** An example read for each scope, by preference: the path after `/v1/orgs/{orgId}`. */
export const firstReads: readonly (readonly [scope: Scope, path: string])[] = [
  ['org.read', ''],
  ['org.clients.read', '/clients'],
  ['org.members.read', '/members'],
  ['org.billing.manage', '/seats'],
  ['org.analytics.read', '/outcomes'],
  ['org.roles.read', '/roles'],
  ['org.referrals.manage', '/referral-codes'],
];

/** Returns a curl command that the key may run. Windows shells accept only double quotes. */
export function curlLine(parts: { apiUrl: string; organizationId: string; key: string; scopes: readonly string[] }) {
  const { apiUrl, organizationId, key, scopes } = parts;
  const path = firstReads.find(([scope]) => scopes.includes(scope))?.[1] ?? '';
  return `curl -H "Authorization: Bearer ${key}" ${apiUrl.replace(/\/$/, '')}/v1/orgs/${organizationId}${path}`;
}

/** Shows a new key once, with a first call to try. */
export function newKey(
  visit: MemberVisit,
  created: { key: string; label: string; scopes: readonly string[]; expiresAt: Date | null },
): Html {
  const { apiUrl } = visit.console;
  const line = curlLine({ apiUrl, organizationId: visit.organizationId, ...created });
  return html`${detailList([
    created.label !== '' && ['Name', displayName(created.label)],
    ['Expires', time(created.expiresAt, 'Never')],
  ])}
  ${shownOnce({
    label: 'API key',
    value: created.key,
    advice: 'Store it with your system’s other secrets, not in code, tickets or chats.',
  })}
  <section aria-labelledby="first-call"><h2 id="first-call">Make your first call</h2>
    <p>Run this command in a terminal. In Windows PowerShell, use <code>curl.exe</code>.</p>
    ${copyable('curl command', line, { multiline: true })}
    <p><a href="${referenceUrl(visit.console)}" rel="noreferrer">API reference</a></p>
  </section>`;
}
