import { type ChainPosition, findChainPosition } from '#domain/audit-log/position.ts';
import { type ClientDetails, getClient } from '#domain/clients/list-clients.ts';
import {
  type EndedBy,
  findReceipt,
  getReceiptResult,
  type Receipt,
  type ReceiptEntry,
  type ReceiptReceiver,
} from '#domain/clients/receipt.ts';
import { regions } from '#domain/contract/regions.ts';
import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { getActionTitle } from '../../components/action-sentences.ts';
import { copyableId } from '../../components/copy.ts';
import { linkButton } from '../../components/link.ts';
import { receiptStatus } from '../../components/status.ts';
import { type Column, detailList, table } from '../../components/table.ts';
import { displayName, formatCount } from '../../components/text.ts';
import { zonedTime } from '../../components/time.ts';
import { page, type RouteResponse } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { webhookName } from '../webhooks/cells.ts';
import { assertMaySeeSeats, kindLabels } from './cells.ts';
import { clientBreadcrumbs } from './end.ts';

/** Shows what can be proven of the end of one client's access, also on paper. */
export const receiptRoutes = [
  member.view({ name: 'showReceipt', path: '/clients/:grantId/receipt', show: receiptPage }),
];

interface PlacedEntry extends ReceiptEntry {
  place: ChainPosition | null;
}

async function receiptPage(visit: MemberVisit): Promise<RouteResponse> {
  assertMaySeeSeats(visit);
  const { console, organizationId, params } = visit;
  const client = await getClient(console.database, organizationId, params.grantId ?? '');
  const receipt = await findReceipt(console.database, organizationId, client.grantId);
  const entries: PlacedEntry[] = [];
  for (const entry of receipt?.entries ?? [])
    entries.push({ ...entry, place: await findChainPosition(console.database, organizationId, entry.id) });
  return page({
    title: 'Receipt of ended access',
    breadcrumbs: clientBreadcrumbs(visit, client),
    body: html`
      ${detailList(accessRows(visit, client, receipt))}
      ${receipt === null ? withoutReceipt(visit, client) : renderProof(visit, receipt, entries)}`,
  });
}

type DetailRow = readonly [name: string, value: Child] | false;

function accessRows(visit: MemberVisit, client: ClientDetails, receipt: Receipt | null): DetailRow[] {
  const { family, professional, kind, grantId, since, endsAt, endReason, status } = client;
  return [
    ['Client', displayName(family)],
    ['Professional', displayName(professional)],
    ['Organization', displayName(visit.organization.registeredName)],
    ['Issued by', `org-api, ${regions[visit.console.region].name}`],
    ['Kind of access', kindLabels[kind]],
    ['Access ID', copyableId('access ID', grantId)],
    ['Access began', zonedTime(since)],
    ['Access ended', status === 'ended' ? zonedTime(endsAt) : notEnded],
    status === 'ended' && [
      'Reason',
      endReason === 'moved' ? 'Moved to a colleague' : 'Ended, not moved to a colleague',
    ],
    receipt !== null && ['Ended by', describeEndedBy(visit, receipt.endedBy)],
    receipt !== null && ['Shown as ended from', zonedTime(receipt.stoppedAt)],
    receipt !== null && receipt.eventId !== null && ['Event ID', copyableId('event ID', receipt.eventId)],
    receipt !== null && ['As of', zonedTime(receipt.asOf)],
  ];
}

/** Names who or what ended the access, and never more than the log knows. */
function describeEndedBy(visit: MemberVisit, { kind, name, roles }: EndedBy): Child {
  if (kind !== 'member') return endedByLabels[kind ?? 'unknown'];
  if (!visit.may('org.members.read') && !visit.may('org.activity.read')) return 'A member of the organization';
  const now =
    roles.length === 0
      ? 'No role in the organization today'
      : `${roles.length === 1 ? 'Role' : 'Roles'} today: ${roles.join(', ')}`;
  return html`${displayName(name ?? 'A member whose name was erased')}, for the organization.
    <span class="quiet"><bdi>${now}</bdi></span>`;
}

const endedByLabels = {
  operator: 'The operator of the service, at the command line',
  platform: 'The platform on which the family gave the access. Who asked for it there is not known here.',
  import: 'An import of the platform’s records. Who asked for it is not known here.',
  erasure: 'The erasure of the family’s data',
  clock: 'Its planned end. No person ended it at that time.',
  unknown: 'Not known',
} as const;

const notEnded = html`<span class="quiet">–</span>`;

function withoutReceipt(visit: MemberVisit, { grantId, status }: ClientDetails): Html {
  const why = {
    active: 'This access has not ended. Its receipt is here once it has.',
    scheduled: 'This access has not begun.',
    withdrawn: 'This access was withdrawn before it began. No read has shown it, and no receiving system was notified.',
    ended: 'This access had already ended when it was added here. No read has shown it as active.',
  };
  return html`<p>${why[status]}</p>
    <p class="actions">${linkButton(visit.at(`/clients/${grantId}`), 'View client', 'secondary')}</p>`;
}

const renderProof = (visit: MemberVisit, receipt: Receipt, entries: readonly PlacedEntry[]): Html => html`
  <section aria-labelledby="receivers"><h2 id="receivers">Receivers</h2>${receiverSection(visit, receipt)}</section>
  <section aria-labelledby="log"><h2 id="log">Audit log</h2>${logSection(visit, receipt, entries)}</section>
  ${whatItStates}
  <p class="quiet screen-only">Print this page, or save it as a PDF file, with your browser.</p>`;

function receiverSection(visit: MemberVisit, { asOf, eventId, receivers, isStored, isPurged }: Receipt): Html {
  if (receivers.length === 0) {
    if (!isStored) return html`<p>The event <code>client.ended</code> follows within seconds.</p>`;
    if (eventId === null)
      return html`<p>No receiving system was notified, because this end was imported without events.</p>`;
    if (isPurged) return html`<p>The record of what the receiving systems answered has been deleted.</p>`;
    return html`<p>No receiving system was registered for ends of access (<code>client.ended</code>).</p>`;
  }
  const acknowledged = receivers.filter((each) => getReceiptResult(each) === 'acknowledged').length;
  return html`<p>${acknowledged} of ${formatCount(receivers.length, 'receiving system', 'receiving systems')} confirmed
      receipt of the notification (<code>client.ended</code>).</p>
    ${table({ caption: 'Receivers', columns: receiverColumns(visit, asOf), rows: receivers })}`;
}

const receiverColumns = (visit: MemberVisit, asOf: string): Column<ReceiptReceiver>[] => [
  { heading: 'Receiving system', main: true, cell: (receiver) => receiverName(visit, receiver) },
  { heading: 'Status', whenNarrow: 'beside', cell: (receiver) => receiptStatus(getReceiptResult(receiver)) },
  { heading: 'Acknowledged', cell: ({ acknowledgedAt }) => zonedTime(acknowledgedAt) },
  { heading: 'Details', cell: (receiver) => describeReceiver(receiver, asOf) },
];

function receiverName(visit: MemberVisit, receiver: ReceiptReceiver): Html {
  const { webhookId, description, url, attempts } = receiver;
  const name = webhookName(receiver);
  const host = description.trim() === '' ? nothing : html`<div class="quiet regular">${URL.parse(url)?.host}</div>`;
  // Once only the log has the delivery, there is no page of it.
  if (attempts === null || !visit.may('org.webhooks.manage')) return html`${name}${host}`;
  return html`<a href="${visit.at(`/webhooks/${webhookId}`)}">${name}</a>${host}`;
}

/** Says what was recorded of a receiver, and what follows. */
function describeReceiver(receiver: ReceiptReceiver, asOf: string): Html {
  const { acknowledgedAt, status, lost, attempts, isAttempting } = receiver;
  if (acknowledgedAt !== null)
    return html`${
      status === null ? 'Recorded in the audit log.' : `The receiving system confirmed receipt (HTTP ${status}).`
    }`;
  const failed = (attempts ?? lost) - lost;
  return html`
    ${
      lost === 0
        ? nothing
        : html`${formatCount(lost, 'attempt was', 'attempts were')} interrupted before the response was recorded. The
            receiver may have the event.`
    }
    ${failed === 0 ? nothing : `${formatCount(failed, 'attempt', 'attempts')} without a confirmation.`}
    ${isAttempting ? 'An attempt is under way, and its response is not recorded yet.' : describeNext(receiver, asOf)}`;
}

function describeNext({ state, webhookState, nextAttemptAt }: ReceiptReceiver, asOf: string): Child {
  if (state === 'exhausted') return 'No further attempt.';
  if (webhookState === 'deleted') return 'Nothing more is sent, because the webhook was deleted.';
  if (state === 'cancelled') return 'Nothing more is sent, because the delivery was cancelled.';
  if (webhookState !== 'active') return `Nothing is sent while the webhook is ${webhookState}.`;
  if (state === 'blocked') return 'The first attempt follows an earlier event of this access.';
  if (nextAttemptAt !== null && nextAttemptAt <= asOf) return 'The next attempt is due.';
  return nextAttemptAt === null ? nothing : html`Next attempt at ${zonedTime(nextAttemptAt)}.`;
}

function logSection(visit: MemberVisit, { isStored }: Receipt, entries: readonly PlacedEntry[]): Html {
  if (entries.length === 0 && !isStored) return html`<p>The entry follows within seconds.</p>`;
  if (entries.length === 0) return html`<p>The log’s entries of this end have been deleted.</p>`;
  return detailList(
    entries.map(({ id, action, at, place }) => [
      getActionTitle(action),
      html`${formatPosition(place)} <span class="quiet">${zonedTime(at)}</span>
        ${place === null ? nothing : html`<br><span class="quiet">Hash</span> <code>${place.hash}</code>`}
        ${visit.may('org.activity.read') ? entryLink(visit, id) : nothing}`,
    ]),
  );
}

const entryLink = (visit: MemberVisit, id: string): Html =>
  html`<a class="screen-only" href="${visit.at(`/audit-log/${id}`)}">View entry</a>`;

const formatPosition = (place: ChainPosition | null): string =>
  place === null ? 'Not in the chain yet' : `Position ${place.position.toLocaleString('en')} of ${place.month}`;

const whatItStates = html`<section aria-labelledby="states"><h2 id="states">What this receipt states</h2>
  <ul>
    <li><strong>Shown as ended from</strong>: until this time, the service showed the access as active. From this time
      on, every new request shows it as ended, as soon as the end is stored. That takes a fraction of a second, or
      longer while the service’s second database is slow.</li>
    <li><strong>Acknowledged</strong>: the receiving system confirmed receipt. What it then did with the notification
      is not known here.</li>
    <li>A receiving system is listed if the organization had registered it for ends of access
      (<code>client.ended</code>) when this access ended.</li>
    <li>The log entries are kept when the records of deliveries are deleted. An evidence package proves their text by
      position and hash.</li>
  </ul></section>`;
