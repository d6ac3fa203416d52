import { type ActivityEntry, findActivityEntry } from '#domain/activity/search.ts';
import { tellWhat, tellWho } from '#domain/activity/sentences.ts';
import { displayName } from '../../components/display-name.ts';
import { detailList } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { NotFound, page } from '../../web/answer.ts';
import { type Child, type Html, html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { resultBadge, sentenceHtml } from './lines.ts';

/** One line: all that is stored of it, in words. */
export const lineRoutes = [
  member.view({
    name: 'showActivityLine',
    path: '/activity/:lineId',
    permission: 'org.activity.read',
    async show(visit) {
      const { organizationId } = visit.organization;
      const entry = await findActivityEntry(visit.console.em, organizationId, visit.params.lineId ?? '');
      if (entry === null) throw new NotFound();
      return page({
        title: 'One line of the log',
        breadcrumbs: [['Activity', visit.at('/activity')]],
        body: html`<p class="lead">${sentenceHtml(tellWho(entry))}: ${sentenceHtml(tellWhat(entry))}.</p>
          ${detailList([...stored(visit, entry), ...detailsOf(entry)])}`,
      });
    },
  }),
];

type Fact = readonly [name: string, value: Child];

function stored(visit: MemberVisit, entry: ActivityEntry): Fact[] {
  const { id, at, personId, personName, keyId, keyHint, action, status, address, count } = entry;
  return [
    ['When', html`${time(at)} <span class="quiet">(${at})</span>`],
    ...(personId === null
      ? []
      : [
          [
            status === null ? 'Person' : 'Acting for',
            filterLink(visit, 'person', personId, displayName(personName ?? personId)),
          ] as const,
        ]),
    ...(keyId === null
      ? []
      : [
          [
            'API key',
            keyLink(
              visit,
              keyId,
              html`${displayName(entry.keyLabel ?? '')} <code class="hint">${keyHint ?? keyId}</code>`,
            ),
          ] as const,
        ]),
    ['What', html`${filterLink(visit, 'action', action, html`<code>${action}</code>`)}`],
    ['Result', resultBadge(entry)],
    ...(count > 1 ? [['Times', count.toLocaleString('en')] as const] : []),
    ['From', address === null ? html`<span class="quiet">not known</span>` : html`<code>${address}</code>`],
    [status === null ? 'Line' : 'Request-Id', html`<code>${id}</code>`],
  ];
}

const filterLink = (visit: MemberVisit, field: string, value: string, label: Html): Html =>
  html`${label} <a class="quiet" href="${visit.at(`/activity?${new URLSearchParams({ [field]: value })}`)}">all of these</a>`;

const keyLink = (visit: MemberVisit, keyId: string, label: Html): Html =>
  visit.may('org.keys.manage')
    ? html`<a href="${visit.at(`/keys/${keyId}`)}">${label}</a>`
    : filterLink(visit, 'key', keyId, label);

/** Names of details; others are shown as they are stored. */
const detailNames: Record<string, string> = {
  hint: 'Key',
  scopes: 'Scopes',
  predecessorId: 'Predecessor',
  memberId: 'Member',
  roleId: 'Role',
  webhookId: 'Webhook',
  eventId: 'Event',
  sessionId: 'Session',
  host: 'Host',
  eventTypes: 'Event types',
  changed: 'Changed',
  added: 'Added',
  removed: 'Removed',
  file: 'File',
};

function detailsOf({ detail, memberName }: ActivityEntry): Fact[] {
  return Object.entries(detail ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [
      detailNames[name] ?? name,
      html`<bdi>${valueText(value)}</bdi>${name === 'memberId' && memberName !== null ? html` (${displayName(memberName)})` : null}`,
    ]);
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  return JSON.stringify(value);
}
