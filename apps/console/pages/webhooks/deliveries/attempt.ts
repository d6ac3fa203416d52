import { type AttemptDetail, findAttempt } from '#domain/webhooks/delivery-detail.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { notice } from '../../../components/notice.ts';
import { receivedText } from '../../../components/received-text.ts';
import { copyable, copyableJson } from '../../../components/secret.ts';
import { attemptStatus } from '../../../components/status.ts';
import { detailList } from '../../../components/table.ts';
import { formatCount } from '../../../components/text.ts';
import { exactTime } from '../../../components/time.ts';
import { computeScale, timingPicture } from '../../../components/timing-picture.ts';
import { NotFoundError, page } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import { deliveriesBreadcrumbs, deliveryPath, deliveryRequest } from '../delivery-cells.ts';
import { getWebhookHead } from '../find-webhook.ts';

/** How many bytes of a response are stored. */
const maxStoredBytes = 16_384;

/** Shows one attempt: its request and response. */
export const attemptRoutes = [
  member.view({
    name: 'showAttempt',
    path: '/webhooks/:webhookId/deliveries/:eventId/attempts/:number',
    permission: 'org.webhooks.manage',
    async show(visit) {
      const webhook = await getWebhookHead(visit);
      const { eventId = '', number = '' } = visit.params;
      if (!/^[1-9]\d{0,5}$/.test(number)) throw new NotFoundError();
      const attempt = await findAttempt(visit.console.database, { ...deliveryRequest(visit), number: Number(number) });
      if (attempt === null) throw new NotFoundError();
      return page({
        title: `Attempt ${attempt.number}`,
        breadcrumbs: [[attempt.type, deliveryPath(visit, eventId)], ...deliveriesBreadcrumbs(visit, webhook)],
        body: html`${renderDetails(attempt)}
          <section aria-labelledby="response"><h2 id="response">Response</h2>${renderResponse(attempt)}</section>
          <section aria-labelledby="request"><h2 id="request">Request</h2>${renderRequest(attempt)}</section>`,
      });
    },
  }),
];

const renderDetails = (attempt: AttemptDetail): Html => html`
  ${detailList([
    ['Result', attemptStatus(attempt)],
    attempt.explanation !== null && attempt.cause !== 'accepted' && ['Cause', attempt.explanation],
    ['Started', exactTime(attempt.startedAt)],
    attempt.finishedAt !== null && ['Finished', exactTime(attempt.finishedAt)],
    ['IP address', attempt.peerAddress ?? 'No connection'],
    ['Signed with', formatCount(attempt.signedWith.length, 'secret', 'secrets')],
  ])}
  ${attempt.timings === null ? nothing : timingPicture(attempt.timings, computeScale([attempt.timings]))}`;

function renderResponse({ finishedAt, status, response, responseEncoding, keptBytes, cause }: AttemptDetail): Html {
  if (finishedAt === null) return html`<p>The attempt is in progress.</p>`;
  if (cause === 'lost') return html`<p>The response was not recorded.</p>`;
  if (status === null) return html`<p>No response.</p>`;
  const bytes = keptBytes ?? 0;
  if (response === null || bytes === 0) return html`<p>Status ${status} without a body.</p>`;
  const isTruncated = bytes >= maxStoredBytes;
  const size = isTruncated ? 'a body, of which the first 16 KiB are shown' : formatCount(bytes, 'byte', 'bytes');
  return html`<p>Status ${status} with ${size}.</p>
    ${receivedText('Response body', response, responseEncoding)}`;
}

function renderRequest({ headers, body, finishedAt, peerAddress, cause }: AttemptDetail): Html {
  const unsent = 'This request did not reach the receiver, because the connection failed.';
  const isSent = peerAddress !== null && !cause?.startsWith('tls_');
  const missing = finishedAt === null ? 'The attempt is in progress.' : 'The headers were not recorded.';
  return html`
    ${finishedAt !== null && !isSent ? notice('info', unsent) : nothing}
    <h3>Headers</h3>
    ${
      headers === null
        ? html`<p>${missing}</p>`
        : html`${copyable('Request headers', headerLines(headers), { multiline: true })}
          ${isSent ? html`<p class="quiet">Host, Content-Length and Connection were also sent.</p>` : nothing}`
    }
    <h3>Body</h3>
    ${copyableJson('Request body', body)}`;
}

const headerLines = (headers: Record<string, string | null>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value ?? '(custom header, value not recorded)'}`)
    .join('\n');
