import { type AttemptDetail, findAttempt } from '#domain/webhooks/delivery-detail.ts';
import { notice } from '../../components/notice.ts';
import { receivedText } from '../../components/received-text.ts';
import { copyable } from '../../components/secret.ts';
import { attemptStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { exactTime } from '../../components/time.ts';
import { scaleOf, timingPicture } from '../../components/timing-picture.ts';
import { NotFound, page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { deliveryPath } from './cells.ts';

/** Bytes of an answer that are kept at most. */
const keptAtMost = 16_384;

/** One attempt: what was sent, and what came back. */
export const attemptRoutes = [
  member.view({
    name: 'showAttempt',
    path: '/webhooks/:webhookId/deliveries/:eventId/attempts/:number',
    permission: 'org.webhooks.manage',
    async show(visit) {
      const webhook = await getHead(visit);
      const { eventId = '', number = '' } = visit.params;
      if (!/^[1-9]\d{0,5}$/.test(number)) throw new NotFound();
      const attempt = await findAttempt(visit.console.em, {
        ...webhookRequest(visit),
        eventId,
        number: Number(number),
      });
      if (attempt === null) throw new NotFound();
      return page({
        title: `Attempt ${attempt.number}`,
        breadcrumbs: [
          [attempt.type, deliveryPath(visit, eventId)],
          ['Deliveries', of(visit, '/deliveries')],
          ...breadcrumbsOf(visit, webhook),
        ],
        body: html`${detailsOf(attempt)}
          <section aria-labelledby="answer"><h2 id="answer">Answer</h2>${answerOf(attempt)}</section>
          <section aria-labelledby="request"><h2 id="request">Request</h2>${requestOf(attempt)}</section>`,
      });
    },
  }),
];

const detailsOf = (attempt: AttemptDetail): Html => html`
  ${detailList([
    ['Result', attemptStatus(attempt)],
    attempt.explanation !== null && ['Why', html`${attempt.explanation} <code>${attempt.cause}</code>`],
    ['Began', exactTime(attempt.startedAt)],
    attempt.finishedAt !== null && ['Ended', exactTime(attempt.finishedAt)],
    ['Round', String(attempt.round)],
    ['Sent to address', attempt.peerAddress ?? 'none: no connection came about'],
    [
      'Signed with',
      attempt.signedWith.length === 1 ? 'one secret' : `${attempt.signedWith.length} secrets, newest first`,
    ],
  ])}
  ${attempt.timings === null ? nothing : timingPicture(attempt.timings, scaleOf([attempt.timings]))}`;

function answerOf({ finishedAt, status, answer, keptBytes, cause }: AttemptDetail): Html {
  if (finishedAt === null) return html`<p>It is under way.</p>`;
  if (cause === 'lost') return html`<p>What came back was not recorded.</p>`;
  if (status === null) return html`<p>None came.</p>`;
  const bytes = keptBytes ?? 0;
  if (answer === null || bytes === 0) return html`<p>Status ${status}, without a body.</p>`;
  const isCut = bytes >= keptAtMost;
  return html`<p>Status ${status}, ${isCut ? 'and the first 16 KiB of its body' : `and ${bytes.toLocaleString('en')} ${bytes === 1 ? 'byte' : 'bytes'}`}, shown as text: the receiver’s words, not ours.</p>
    ${receivedText('The receiver’s answer', answer)}`;
}

function requestOf({ headers, body, finishedAt, peerAddress }: AttemptDetail): Html {
  return html`
    ${finishedAt !== null && peerAddress === null ? notice('info', 'Nothing of this reached the receiver: no connection came about.') : nothing}
    <h3>Headers</h3>
    ${
      headers === null
        ? html`<p>They are not on record: ${finishedAt === null ? 'the attempt is under way' : 'the attempt was lost, or made before headers were kept'}. The body is what every attempt sends.</p>`
        : html`${copyable('the headers', headerLines(headers), { multiline: true })}<p class="quiet">As they were sent, with Host, Content-Length and Connection besides.</p>`
    }
    <h3>Body</h3>
    ${copyable('the body', body, { multiline: true })}`;
}

const headerLines = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
