import type { DeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { attemptStatus } from '../../../components/status.ts';
import { exactTime } from '../../../components/time.ts';
import { computeScale, timingPicture } from '../../../components/timing-picture.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveryPath } from '../delivery-cells.ts';

/** Lists attempts, newest first, with their result, cause, remedy and timings. */
export function attemptList(visit: MemberVisit, { newestAttempts, eventId }: DeliveryDetail): Html {
  if (newestAttempts.length === 0) return html`<p>No attempts yet.</p>`;
  const scale = computeScale(newestAttempts.map(({ timings }) => timings));
  return html`<ol class="attempts">${newestAttempts.map((attempt) => {
    const href = `${deliveryPath(visit, eventId)}/attempts/${attempt.number}`;
    return html`<li>
      <h3>Attempt ${attempt.number} ${attemptStatus(attempt)} <span class="quiet">${exactTime(
        attempt.startedAt,
      )}</span></h3>
      ${attempt.explanation === null ? nothing : html`<p>${attempt.explanation}</p>`}
      ${attempt.timings === null ? nothing : timingPicture(attempt.timings, scale)}
      <p><a id="attempt-${attempt.number}" href="${href}">View request and response<span
        class="visually-hidden"> of attempt ${attempt.number}</span></a></p></li>`;
  })}</ol>`;
}
