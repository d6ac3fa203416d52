import { everything, listAuditEntries } from '#domain/audit-log/search.ts';
import { findKeyUsage, type KeyUsage, listCallers } from '#domain/keys/list.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { copyableId } from '../../components/copy.ts';
import { linkButton } from '../../components/link.ts';
import { statusNotice } from '../../components/notice.ts';
import { describeScope } from '../../components/reads.ts';
import { detailList } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { relativeTime, time } from '../../components/time.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getReader } from '../audit-log/filter.ts';
import { auditLogTable } from '../audit-log/table.ts';
import { callersTable } from './callers.ts';
import {
  allowedAddresses,
  isExpiringSoon,
  isUnused,
  keyHintCell,
  keyName,
  keyTitle,
  lastUse,
  recentUses,
  renderStatus,
} from './cells.ts';
import { creatorSection } from './creator-section.ts';
import { getKey } from './find-key.ts';

/** How many log entries the page of a key shows. */
const recentEntries = 5;

/** Shows one key: its status, permissions, creator, callers and latest entries. */
export const keyRoutes = [
  member.view({
    name: 'showKey',
    path: '/keys/:keyId',
    permission: 'org.keys.manage',
    async show(visit) {
      const { database } = visit.console;
      const key = await getKey(visit);
      const callers = await listCallers(database, visit.organizationId, key.id);
      return page({
        title: keyTitle(key),
        breadcrumbs: [['API keys', visit.at('/keys')]],
        badge: renderStatus(key, visit.console.now()),
        actions: key.state === 'valid' ? actions(visit, key) : null,
        body: html`
          ${warnings(visit, key)}
          ${await keyDetails(visit, key)}
          <section aria-labelledby="reads"><h2 id="reads">Permissions</h2>${renderPermissions(key)}</section>
          ${key.state === 'valid' ? await creatorSection(visit, key) : nothing}
          <section aria-labelledby="callers"><h2 id="callers">Callers</h2>
            ${callers.length === 0 ? html`<p>No calls in the audit log.</p>` : callersTable(callers)}</section>
          ${visit.may('org.activity.read') ? await recent(visit, key) : nothing}`,
      });
    },
  }),
];

function warnings(visit: MemberVisit, key: KeyUsage): Html {
  const now = visit.console.now();
  if (key.state !== 'valid') return statusNotice('info', endReason(key));
  const inactive = html`This key can’t read anything: ${inactiveReason(key)} To restore access, a member with its
    permissions can rotate the key.`;
  const soon = html`Expires ${relativeTime(key.expiresAt)}. Rotate the key before then to avoid an interruption.`;
  const unused = 'Not used for 30 days or more. Revoke the key if you no longer need it.';
  return html`
    ${key.working.length === 0 ? statusNotice('bad', inactive) : nothing}
    ${isExpiringSoon(key, now) ? statusNotice('warning', soon) : nothing}
    ${isUnused(key, now) ? statusNotice('info', unused) : nothing}`;
}

const endReason = ({ state, creatorName }: KeyUsage): Html =>
  state === 'inactive'
    ? html`This key is inactive, because its creator ${displayName(creatorName)} left the organization. All calls return
        403. The key stays inactive if they return.`
    : html`This key ${state === 'revoked' ? 'was revoked' : 'has expired'}. All calls return 401.`;

const inactiveReason = ({ creatorName, creatorStatus }: KeyUsage): Html =>
  creatorStatus === 'active'
    ? html`its creator ${displayName(creatorName)} no longer has any of its permissions.`
    : html`its creator ${displayName(creatorName)} is not an active member (${creatorStatus}).`;

async function keyDetails(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  return detailList([
    key.description !== '' && ['Description', displayName(key.description)],
    key.number !== null && ['Name in emails', `Key ${key.number}`],
    ['Key prefix', keyHintCell(key)],
    ['Key ID', copyableId('key ID', key.id)],
    ['Created', time(key.createdAt)],
    ['Creator', displayName(key.creatorName)],
    key.revokedAt !== null && ['Revoked', time(key.revokedAt)],
    key.creatorLeftAt !== null && ['Inactive since', time(key.creatorLeftAt)],
    ['Expires', time(key.expiresAt, 'Never')],
    ['Allowed IP addresses', allowedAddresses(key)],
    ['Last used', lastUse(key)],
    ['Calls in 24 hours', recentUses(key)],
    key.predecessorId !== null && ['Replaces', await neighbor(visit, key.predecessorId)],
    key.successorId !== null && ['Replaced by', await neighbor(visit, key.successorId)],
  ]);
}

/** Returns a link to the key that this one replaces, or that replaces it. */
async function neighbor(visit: MemberVisit, keyId: string): Promise<Html> {
  const { database, now } = visit.console;
  const key = await findKeyUsage(database, visit.organizationId, keyId, now());
  if (key === null) return nothing;
  return html`<a href="${visit.at(`/keys/${keyId}`)}">${keyName(key)} ${keyHintCell(key)}</a>
    ${renderStatus(key, now())}`;
}

const actions = (visit: MemberVisit, { id }: KeyUsage): Html =>
  html`${linkButton(visit.at(`/keys/${id}/revoke`), 'Revoke key…', 'secondary')}
    ${linkButton(visit.at(`/keys/${id}/edit`), 'Edit key', 'secondary')}
    ${linkButton(visit.at(`/keys/${id}/rotate`), 'Rotate key…')}`;

function renderPermissions({ scopes, working, state }: KeyUsage): Html {
  return html`<ul class="plain-list">${scopes.map((scope) => {
    const isLost = state === 'valid' && !working.includes(scope);
    const lost = html` <strong class="problem">(inactive: the creator doesn’t have this permission)</strong>`;
    return html`<li><code class="chip">${scope}</code> Read ${describeScope(scope)}${isLost ? lost : nothing}</li>`;
  })}</ul>`;
}

async function recent(visit: MemberVisit, key: KeyUsage): Promise<Html> {
  const filter = { ...everything, keyId: key.id };
  const { console, organizationId } = visit;
  const { entries } = await listAuditEntries(
    console.database,
    organizationId,
    filter,
    null,
    recentEntries,
    getReader(visit),
  );
  return html`<section aria-labelledby="recent"><h2 id="recent">Recent entries</h2>
    ${auditLogTable(visit, entries, 'Recent entries of this key')}
    <p><a href="${visit.at(`/audit-log?key=${key.id}`)}">View all</a></p></section>`;
}
