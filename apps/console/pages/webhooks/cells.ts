import { type HealthCounts, totalOf } from '#domain/webhooks/health.ts';
import { type SignatureVerdict, signatureVerdictSentences } from '#domain/webhooks/signature-verdict.ts';
import { openCountedTo, type WebhookSummary } from '#domain/webhooks/summary.ts';
import { notice } from '../../components/notice.ts';
import { foreignText } from '../../components/received-text.ts';
import { relativeTime } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { nameOf } from './find-webhook.ts';

/** What a webhook is called, and where it posts to. */
export const webhookName = (webhook: Pick<WebhookSummary, 'description' | 'url'>): Html =>
  webhook.description.trim() === '' ? html`${nameOf(webhook)}` : foreignText(nameOf(webhook));

/** Its event types, each as it stands in an event. */
export const typeList = (types: readonly string[]): Html =>
  html`${types.map((type, index) => html`${index > 0 ? ', ' : ''}<code>${type}</code>`)}`;

/** What became of the events of 24 hours, in words. */
export function dayInWords(day: HealthCounts): Html {
  const total = totalOf(day);
  if (total === 0) return html`<span class="quiet">no events</span>`;
  const delivered = day.atOnce + day.afterRetries;
  const all = day.isCapped ? `the last ${total}` : total.toLocaleString('en');
  const open = day.open > 0 ? `, ${day.open} not yet` : '';
  return html`${delivered.toLocaleString('en')} of ${all} delivered${open}${day.failed > 0 ? html`, <strong class="problem">${day.failed} given up</strong>` : nothing}`;
}

/** A number of open deliveries, which are not counted without end. */
export const countOpen = (count: number): string =>
  count >= openCountedTo ? `${openCountedTo.toLocaleString('en')} or more` : count.toLocaleString('en');

/** Whether the receiver verifies signatures, as it was last found out. */
export function verdictNotice({
  signatureVerdict: verdict,
  signatureCheckedAt,
}: {
  signatureVerdict: SignatureVerdict | null;
  signatureCheckedAt: string | null;
}): Html {
  if (verdict === null)
    return notice(
      'info',
      'It has not been checked yet, with this URL and this secret, whether the receiver verifies what it gets.',
    );
  const kinds = {
    verified: 'good',
    accepts_bad_signatures: 'bad',
    refuses_good_signatures: 'bad',
    no_answer: 'warning',
  } as const;
  // Said quietly: it is no news, and would be read out at each visit as an alert.
  return html`<div class="notice notice-${kinds[verdict]}"><p>${signatureVerdictSentences[verdict]} Checked ${relativeTime(signatureCheckedAt)}.</p></div>`;
}
