import { type KeyUsage, listValidKeys } from '#domain/keys/list.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { holdsDeliveries } from '#domain/webhooks/status.ts';
import { noCounts, type WebhookHead } from '#domain/webhooks/summary.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { icon } from '../../components/icon.ts';
import { webhookStatus } from '../../components/status.ts';
import { relativeTime } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isExpiringSoon, isUsedAfterRotation, keyName, renderStatus } from '../keys/cells.ts';
import { failingNotice, webhookName } from '../webhooks/cells.ts';

/** Lists the webhooks and API keys that need attention, the most severe first. */
export async function attention(visit: MemberVisit): Promise<Html> {
  const webhooks = await failingWebhooks(visit);
  const keys = await failingKeys(visit);
  if (webhooks === null && keys === null) return nothing;
  const problems = [...(webhooks ?? []), ...(keys ?? [])];
  const none = html`<li>${icon('good', 'good')}<span class="what">No problems found.</span></li>`;
  return html`<section aria-labelledby="attention"><h2 id="attention">Needs attention</h2>
    <ul class="attention">${problems.length === 0 ? none : problems}</ul></section>`;
}

/** Returns null for a member who may not see webhooks. */
async function failingWebhooks(visit: MemberVisit): Promise<Html[] | null> {
  if (!visit.may('org.webhooks.manage')) return null;
  const all = await listWebhooks(visit.console.database, visit.request, noCounts);
  const failing = all.filter(({ state, failingSince }) => holdsDeliveries(state) || failingSince !== null);
  return failing.sort((a, b) => rankSeverity(a) - rankSeverity(b)).map((webhook) => webhookLine(visit, webhook));
}

/** Orders failing webhooks first, then suspended, then paused. */
const rankSeverity = ({ state }: WebhookHead): number => ['active', 'suspended', 'paused'].indexOf(state);

function webhookLine(visit: MemberVisit, webhook: WebhookHead): Html {
  const here = visit.at(`/webhooks/${webhook.id}`);
  // Who resumes before the repair gets the same failure, so the cause comes first.
  const isPaused = webhook.state === 'paused';
  const what = holdsDeliveries(webhook.state) ? html`New events are held until you resume.` : failingNotice(webhook);
  return html`<li>${icon(holdsDeliveries(webhook.state) ? 'paused' : 'bad', isPaused ? 'warning' : 'bad')}
    <span class="what"><a href="${here}">${webhookName(webhook)}</a> ${webhookStatus(webhook)} ${what}</span>
    <a href="${isPaused ? `${here}/resume` : here}">${isPaused ? 'Resume…' : 'See cause'}<span
      class="visually-hidden"> of ${webhookName(webhook)}</span></a></li>`;
}

/** Returns null for a member who may not see keys. */
async function failingKeys(visit: MemberVisit): Promise<Html[] | null> {
  if (!visit.may('org.keys.manage')) return null;
  const now = visit.console.now();
  const keys = await listValidKeys(visit.console.database, visit.organizationId, now);
  return keys
    .filter((key) => key.working.length === 0 || isExpiringSoon(key, now) || isUsedAfterRotation(key, keys))
    .map((key) => keyLine(visit, key, now));
}

function keyLine(visit: MemberVisit, key: KeyUsage, now: Date): Html {
  const isInactive = key.working.length === 0;
  const isReplaced = key.successorId !== null;
  const what = isInactive
    ? html`Its owner has none of its permissions.`
    : html`Expires ${relativeTime(key.expiresAt)}${isReplaced ? ' and is still used instead of its replacement' : ''}.`;
  return html`<li>${icon('keys', isInactive ? 'bad' : 'warning')}
    <span class="what">API key <a href="${visit.at(`/keys/${key.id}`)}">${keyName(key)}</a>
      ${isInactive ? renderStatus(key, now) : nothing} ${what}</span>
    ${
      isReplaced
        ? nothing
        : html`<a href="${visit.at(`/keys/${key.id}/rotate`)}">Rotate…<span
            class="visually-hidden"> ${keyName(key)}</span></a>`
    }</li>`;
}
