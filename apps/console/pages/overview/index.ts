import { getOverview, type Overview, waitingCountedTo } from '#domain/db/statements/overview.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Shows the overview of an organization: webhooks that need attention, first steps and counts. */
export const routes = [
  member.view({
    name: 'showOverview',
    path: '',
    async show(visit) {
      const counts = await getOverview(visit.console.pool, visit.organization.organizationId);
      return page({
        title: 'Overview',
        body: html`
          ${visit.may('org.webhooks.manage') ? webhookNotices(visit, counts) : nothing}
          ${firstSteps(visit, counts)}
          ${numbers(visit, counts)}`,
      });
    },
  }),
];

/** Draws a notice for each kind of webhook that needs attention. */
function webhookNotices(visit: MemberVisit, counts: Overview): Html {
  const view = html`<a href="${visit.at('/webhooks')}">View webhooks</a>`;
  const of = (count: number) => `${count} ${count === 1 ? 'webhook is' : 'webhooks are'}`;
  const held = 'New events are held until you resume.';
  return html`
    ${counts.failingWebhooks > 0 ? notice('bad', html`${of(counts.failingWebhooks)} failing. ${view}`) : nothing}
    ${counts.suspendedWebhooks > 0 ? notice('warning', html`${of(counts.suspendedWebhooks)} suspended. ${held} ${view}`) : nothing}
    ${counts.pausedWebhooks > 0 ? notice('info', html`${of(counts.pausedWebhooks)} paused. ${held} ${view}`) : nothing}`;
}

interface Step {
  done: boolean;
  title: string;
  why: string;
  action: Html;
}

/**
 * Draws the steps to a first delivery that this member can take, while one of them is open. A step
 * that was done once stays done.
 */
function firstSteps(visit: MemberVisit, counts: Overview): Html {
  const steps: Step[] = [];
  if (visit.may('org.keys.manage'))
    steps.push(
      {
        done: counts.hasCreatedKey,
        title: 'Create an API key',
        why: 'Your systems use it to read clients, members, seats and outcomes.',
        action: linkButton(visit.at('/keys/new'), 'Create API key'),
      },
      {
        done: counts.hasUsedKey,
        title: 'Call the API',
        why:
          'A new key comes with a command that you can run in a terminal. If you didn’t save the key, ' +
          'rotate it to get a new one.',
        action: html`<a href="${visit.at('/keys')}">View API keys</a><a href="${visit.console.apiUrl}/docs" rel="noreferrer">API reference</a>`,
      },
    );
  if (visit.may('org.webhooks.manage'))
    steps.push(
      {
        done: counts.hasCreatedWebhook,
        title: 'Add a webhook',
        why:
          'Your system receives an event within seconds when a client starts or ends, or a seat is ' +
          'assigned or ended.',
        action: linkButton(visit.at('/webhooks/new'), 'Add webhook'),
      },
      {
        done: counts.hasDelivered,
        title: 'Receive an event',
        why: 'Send a test event to check that your system accepts events.',
        action: waysToDeliver(visit, counts),
      },
    );
  const next = steps.findIndex(({ done }) => !done);
  if (next === -1) return nothing;
  return html`<section aria-labelledby="first"><h2 id="first">Get started</h2><ol class="first-steps">${steps.map(
    ({ done, title, why, action }, index) => html`<li class="${done ? 'done' : ''}">
      <h3>${title}${done ? html`<span class="visually-hidden"> (completed)</span>` : nothing}</h3>
      ${done ? nothing : html`<p>${why}</p>`}
      ${index === next ? html`<p class="actions">${action}</p>` : nothing}</li>`,
  )}</ol></section>`;
}

/** Offers a test event and, with seat events, a real one. */
function waysToDeliver(visit: MemberVisit, { newestWebhookId, hasSeatWebhook }: Overview): Html {
  if (newestWebhookId === null) return linkButton(visit.at('/webhooks/new'), 'Add webhook');
  return html`${linkButton(visit.at(`/webhooks/${newestWebhookId}/test`), 'Send test event')}${
    hasSeatWebhook && visit.may('org.seats.manage')
      ? html`<a href="${visit.at('/clients/seats/assign')}">Assign a seat to send a real event</a>`
      : nothing
  }`;
}

function numbers(visit: MemberVisit, counts: Overview): Html {
  const tiles = [
    visit.may('org.keys.manage') && (['API keys', counts.liveKeys, 'active', '/keys'] as const),
    visit.may('org.webhooks.manage') &&
      (['Webhooks', counts.webhooks, pendingText(counts.waitingDeliveries), '/webhooks'] as const),
    visit.may('org.members.read') && (['Members', counts.activeMembers, 'active', '/members'] as const),
    visit.may('org.clients.read') &&
      (['Client families', counts.activeFamilies, `${counts.seatsUsed} with a seat`, '/clients'] as const),
  ].filter((tile) => tile !== false);
  return html`<section aria-labelledby="numbers"><h2 id="numbers">${visit.organization.organizationName}</h2>
    ${tiles.length === 0 ? html`<p>Your roles don’t include any counts. Ask an owner or administrator for more permissions.</p>` : nothing}
    <ul class="tiles">${tiles.map(
      ([label, count, detail, path]) =>
        html`<li><a href="${visit.at(path)}"><span class="tile-label">${label}</span><span class="tile-count">${count.toLocaleString('en')}</span><span class="quiet">${detail}</span></a></li>`,
    )}</ul></section>`;
}

const pendingText = (deliveries: number) =>
  `${deliveries.toLocaleString('en')}${deliveries < waitingCountedTo ? '' : ' or more'} pending ${deliveries === 1 ? 'delivery' : 'deliveries'}`;
