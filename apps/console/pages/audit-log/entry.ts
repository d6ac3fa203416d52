import { type AuditEntry, findAuditEntry } from '#domain/audit-log/search.ts';
import { describeCause } from '#domain/webhooks/causes.ts';
import { type Child, type Html, html } from '#runtime/pages/html.ts';
import {
  describeAction,
  describeActor,
  getActionTitle,
  isChange,
  settingNames,
} from '../../components/action-sentences.ts';
import { copyableId } from '../../components/copy.ts';
import { queryString } from '../../components/list-filter.ts';
import { detailList } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { exactTime, time } from '../../components/time.ts';
import { NotFoundError, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getReader } from './filter.ts';
import { resultBadge, sentenceHtml } from './table.ts';

export const entryRoutes = [
  member.view({
    name: 'showAuditEntry',
    path: '/audit-log/:entryId',
    permission: 'org.activity.read',
    async show(visit) {
      const { console, organizationId, params } = visit;
      const entry = await findAuditEntry(console.database, organizationId, params.entryId ?? '', getReader(visit));
      if (entry === null) throw new NotFoundError();
      return page({
        title: 'Event details',
        breadcrumbs: [['Audit log', visit.at('/audit-log')]],
        body: html`<p class="lead">${sentenceHtml(visit, describeActor(entry))}:
          ${sentenceHtml(visit, describeAction(entry))}.</p>
          ${detailList([...entryRows(visit, entry), ...detailRows(entry)])}`,
      });
    },
  }),
];

type DetailRow = readonly [name: string, value: Child] | false;

function entryRows(visit: MemberVisit, entry: AuditEntry): DetailRow[] {
  const { id, at, personId, personName, keyId, keyLabel, keyHint, action, status, address, count } = entry;
  const keyName = html`${displayName(keyLabel ?? '')} <code class="hint">${keyHint ?? keyId}</code>`;
  return [
    ['Time', html`${time(at)} <span class="quiet">(${at})</span>`],
    personId !== null && [
      status === null ? 'Person' : 'Key creator',
      filterLink(visit, 'person', personId, displayName(personName ?? personId)),
    ],
    keyId !== null && ['API key', keyLink(visit, keyId, keyName)],
    ['Action', filterLink(visit, 'action', action, html`${getActionTitle(action)}`)],
    ['Result', resultBadge(entry)],
    count > 1 && ['Count', count.toLocaleString('en')],
    ['IP address', address === null ? html`<span class="quiet">–</span>` : copyableId('IP address', address)],
    status === null ? ['Event ID', copyableId('event ID', id)] : ['Request-Id', copyableId('request ID', id)],
  ];
}

const filterLink = (visit: MemberVisit, field: string, value: string, label: Html): Html =>
  html`${label} <a class="quiet" href="${visit.at(`/audit-log${queryString({ [field]: value })}`)}">View all</a>`;

const keyLink = (visit: MemberVisit, keyId: string, label: Html): Html =>
  visit.may('org.keys.manage')
    ? html`<a href="${visit.at(`/keys/${keyId}`)}">${label}</a>`
    : filterLink(visit, 'key', keyId, label);

/** Labels of details. Other details are labeled with their stored names. */
const detailNames: Record<string, string> = {
  hint: 'Key prefix',
  scopes: 'Scopes',
  allowedAddresses: 'Allowed IP addresses',
  allowedBefore: 'Allowed before',
  predecessorId: 'Previous key',
  memberId: 'Member',
  roleId: 'Role',
  webhookId: 'Webhook',
  eventId: 'Event ID',
  sessionId: 'Session',
  host: 'Host',
  eventTypes: 'Event types',
  postsPerSecond: 'Requests per second',
  headers: 'Custom headers',
  headersSet: 'New values of headers',
  changed: 'Changed',
  renamed: 'Renamed',
  added: 'Added',
  removed: 'Removed',
  sha256: 'SHA-256 of the file',
  manifestSha256: 'SHA-256 of the manifest',
  from: 'From',
  to: 'To',
  cause: 'Cause',
  grantId: 'Access ID',
  stoppedAt: 'Reads stopped, not before',
  deliveries: 'Deliveries',
  receivers: 'Receivers',
  ...settingNames,
};

function detailRows({ detail, memberName }: AuditEntry): DetailRow[] {
  return Object.entries(detail ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      const [label, text] = [detailNames[name] ?? name, name === 'cause' ? causeText(value) : valueText(value)];
      if (name === 'receivers' && Array.isArray(value)) return [label, receiverList(value)];
      if (name === 'stoppedAt') return [label, exactTime(text)];
      const shown = name.endsWith('Id') ? copyableId(label, text) : html`<bdi>${text}</bdi>`;
      const isMember = name === 'memberId' && memberName !== null;
      return [label, html`${shown}${isMember ? html` (${displayName(memberName)})` : null}`];
    });
}

/** Lists the receivers of an event that the log names by the ids of their webhooks. */
const receiverList = (receivers: readonly { webhookId?: unknown; acknowledgedAt?: unknown }[]): Html =>
  html`<ul class="plain-list">${receivers.map(
    ({ webhookId, acknowledgedAt }) =>
      html`<li><code>${valueText(webhookId)}</code> ${
        typeof acknowledgedAt === 'string' ? html`acknowledged ${exactTime(acknowledgedAt)}` : 'did not acknowledge'
      }</li>`,
  )}</ul>`;

const causeText = (value: unknown) => (typeof value === 'string' ? describeCause(value) : valueText(value));

function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || (Array.isArray(value) && value.length === 0)) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (isChange(value)) return `${valueText(value.from)} → ${valueText(value.to)}`;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  return JSON.stringify(value);
}
