import { listActivity } from '#domain/activity/search.ts';
import { reads } from '#domain/activity/sentences.ts';
import { operationsOfScope } from '#domain/contract/operations.ts';
import { findKeyUsage, type KeyUsage, listCallers } from '#domain/keys/usage.ts';
import { displayName } from '../../components/display-name.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { activityTable } from '../activity/table.ts';
import { callersTable } from './callers.ts';
import { isExpiringSoon, isUnused, keyHintCell, keyName, keyTitle, statusOf } from './cells.ts';
import { getKey } from './find-key.ts';
import { makerWatch } from './maker-watch.ts';

/** Lines of the log on the page of a key. */
const recentLines = 5;

/** One key: what it is, who uses it from where, whose rights it rests on. */
export const keyRoutes = [
  member.view({
    name: 'showKey',
    path: '/keys/:keyId',
    permission: 'org.keys.manage',
    async show(visit) {
      const { pool } = visit.console;
      const key = await getKey(visit);
      const callers = await listCallers(pool, visit.organization.organizationId, key.id);
      return page({
        title: keyTitle(key),
        breadcrumbs: [['API keys', visit.at('/keys')]],
        body: html`
          ${warnings(visit, key)}
          ${await keyFacts(visit, key)}
          ${key.state === 'live' ? actions(visit, key) : nothing}
          <section aria-labelledby="reads"><h2 id="reads">What it reads</h2>${whatItReads(key)}</section>
          ${key.state === 'live' ? await makerWatch(visit, key) : nothing}
          <section aria-labelledby="callers"><h2 id="callers">Where it is called from</h2>
            ${callers.length === 0 ? html`<p>Nothing has called the API with it, as far as the activity log goes back.</p>` : callersTable(callers)}</section>
          ${visit.may('org.activity.read') ? await recent(visit, key) : nothing}`,
      });
    },
  }),
];

function warnings(visit: MemberVisit, key: KeyUsage): Html {
  const now = visit.console.now();
  if (key.state !== 'live') return notice('info', whyEnded(key));
  return html`
    ${key.working.length === 0 ? notice('bad', html`It reads nothing now: ${whyNothing(key)} A person who holds its scopes can rotate it; the successor then acts for them.`) : nothing}
    ${isExpiringSoon(key, now) && key.successorId === null ? notice('warning', html`It expires ${relativeTime(key.expiresAt)}. Rotate it before, and both keys work until you have put the new one in place.`) : nothing}
    ${isUnused(key, now) ? notice('info', 'Nobody has used it for 30 days or more. If nothing needs it, revoke it: a key that does not exist cannot get out.') : nothing}`;
}

const whyEnded = ({ state, makerName }: KeyUsage): Html =>
  state === 'inactive'
    ? html`This key is inactive because ${displayName(makerName)}, for whom it acted, left the organization: every call with it is answered 403, also if they return.`
    : html`This key ${state === 'revoked' ? 'was revoked' : 'has expired'}: every call with it is answered 401.`;

const whyNothing = ({ makerName, makerStatus }: KeyUsage): Html =>
  makerStatus === 'active'
    ? html`${displayName(makerName)}, for whom it acts, no longer holds any of its scopes.`
    : html`${displayName(makerName)}, for whom it acts, is no active member (${makerStatus}).`;

async function keyFacts(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  return detailList([
    ['State', statusOf(key, visit.console.now())],
    ['Shown as', keyHintCell(key)],
    ['Made', html`${time(key.createdAt)} by ${displayName(key.makerName)}`],
    key.revokedAt !== null && ['Revoked', time(key.revokedAt)],
    key.makerLeftAt !== null && ['Inactive since', time(key.makerLeftAt)],
    ['Expires', time(key.expiresAt, 'never')],
    ['Last use', relativeTime(key.lastUsedAt, 'never')],
    ['Uses in 24 hours', key.uses24h.toLocaleString('en')],
    key.predecessorId !== null && ['Replaces', await neighbor(visit, key.predecessorId)],
    key.successorId !== null && ['Replaced by', await neighbor(visit, key.successorId)],
  ]);
}

/** A link to the key before or after this one. */
async function neighbor(visit: MemberVisit, keyId: string): Promise<Html> {
  const { pool, now } = visit.console;
  const key = await findKeyUsage(pool, visit.organization.organizationId, keyId, now());
  if (key === null) return nothing;
  return html`<a href="${visit.at(`/keys/${keyId}`)}">${keyName(key)} ${keyHintCell(key)}</a> ${statusOf(key, now())}`;
}

const actions = (visit: MemberVisit, { id }: KeyUsage): Html =>
  html`<p class="actions">${linkButton(visit.at(`/keys/${id}/rotate`), 'Rotate')}${linkButton(visit.at(`/keys/${id}/revoke`), 'Revoke…', 'secondary')}</p>`;

function whatItReads({ scopes, working, state }: KeyUsage): Html {
  return html`<ul>${scopes.map((scope) => {
    const what = operationsOfScope[scope].map((operation) => reads[operation] ?? operation).join(', ');
    const isLost = state === 'live' && !working.includes(scope);
    return html`<li><code>${scope}</code>: ${what}${isLost ? html` <strong class="problem">(not now: its maker does not hold it)</strong>` : nothing}</li>`;
  })}</ul>`;
}

async function recent(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const none = { personId: null, action: null, outcome: null, from: null, to: null };
  const filter = { ...none, keyId: key.id };
  const { organizationId } = visit.organization;
  const { entries } = await listActivity(visit.console.em, organizationId, filter, null, recentLines);
  return html`<section aria-labelledby="recent"><h2 id="recent">Latest in the activity log</h2>
    ${activityTable(visit, entries, 'Latest lines about this key')}
    <p><a href="${visit.at(`/activity?key=${key.id}`)}">Everything about this key</a></p></section>`;
}
