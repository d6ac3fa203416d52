import { type HealthCounts, sumCounts } from '#domain/webhooks/health.ts';
import { type SignatureResult, signatureResultSentences } from '#domain/webhooks/signature-result.ts';
import { openCountedTo } from '#domain/webhooks/summary.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { chips } from '../../components/chips.ts';
import { foreignText } from '../../components/foreign-text.ts';
import { notice } from '../../components/notice.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type NamedWebhook, webhookTitle } from './find-webhook.ts';

/** Returns a webhook's name as HTML. Its description, which a member typed, is isolated. */
export const webhookName = (webhook: NamedWebhook): Html =>
  webhook.description.trim() === '' ? html`${webhookTitle(webhook)}` : foreignText(webhookTitle(webhook));

/** Says since when every delivery of a failing webhook has failed. */
export const failingNotice = ({ failingSince }: { failingSince: string | null }): Html =>
  html`All deliveries failing since ${time(failingSince)} (${relativeTime(failingSince)}).`;

export const typeList = (types: readonly string[]): Html => chips(types, 4);

/** Returns the deliveries of 24 hours in words: `12 of 15 delivered, 2 retrying, 1 failed`. */
export function describeDay(day: HealthCounts): Html {
  const total = sumCounts(day);
  if (total === 0) return html`<span class="quiet">No events</span>`;
  const delivered = day.atOnce + day.afterRetries;
  const all = day.isCapped ? `the latest ${total}` : total.toLocaleString('en');
  const open = (['pending', 'retrying', 'held'] as const)
    .filter((key) => day[key] > 0)
    .map((key) => `, ${day[key].toLocaleString('en')} ${key}`)
    .join('');
  const failed = day.failed > 0 ? html`, <strong class="problem">${day.failed} failed</strong>` : nothing;
  return html`${delivered.toLocaleString('en')} of ${all} delivered${open}${failed}`;
}

/** Returns a count of open deliveries, which stops at `openCountedTo`. */
export const formatOpenCount = (count: number): string =>
  count >= openCountedTo ? `${openCountedTo.toLocaleString('en')} or more` : count.toLocaleString('en');

/** Returns the same with its noun: `1 held delivery`, `12 held deliveries`. */
export const countDeliveries = (count: number, adjective: string): string =>
  `${formatOpenCount(count)} ${adjective} ${count === 1 ? 'delivery' : 'deliveries'}`;

const signatureKinds = {
  verified: 'good',
  accepts_bad_signatures: 'bad',
  rejects_good_signatures: 'bad',
  no_response: 'warning',
} as const;

/** Returns the result of the last signature check. */
export function signatureNotice({
  signatureResult: result,
  signatureCheckedAt,
}: {
  signatureResult: SignatureResult | null;
  signatureCheckedAt: string | null;
}): Html {
  if (result === null)
    return notice('info', 'Not checked yet. Check that the receiver verifies signatures with this URL and secret.');
  // Not a `notice`: screen readers would announce an old result as an alert on each visit.
  return html`<div class="notice notice-${signatureKinds[result]}"><p>${signatureResultSentences[result]}
    Checked ${relativeTime(signatureCheckedAt)}.</p></div>`;
}
