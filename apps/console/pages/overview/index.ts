import { getOverview, type Overview, waitingCountedTo } from '#domain/db/statements/overview.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** The first page of an organization: what to do first, and how much there is of everything. */
export const routes = [
  member.view({
    name: 'showOverview',
    path: '',
    async show(visit) {
      const counts = await getOverview(visit.console.pool, visit.organization.organizationId);
      return page({
        title: 'Overview',
        body: html`
          ${counts.parkedWebhooks > 0 && visit.may('org.webhooks.manage') ? notice('warning', html`${counts.parkedWebhooks === 1 ? 'A webhook is' : `${counts.parkedWebhooks} webhooks are`} paused or suspended. New events are held until you resume. <a href="${visit.at('/webhooks')}">View webhooks</a>.`) : nothing}
          ${firstSteps(visit, counts)}
          ${numbers(visit, counts)}`,
      });
    },
  }),
];

interface Step {
  done: boolean;
  title: string;
  why: string;
  action: Html;
}

/**
 * The way from nothing to a first delivery, as long as one of its steps is open that this member
 * can take. What was done once stays done, whatever became of it.
 */
function firstSteps(visit: MemberVisit, counts: Overview): Html {
  const steps: Step[] = [];
  if (visit.may('org.keys.manage'))
    steps.push(
      {
        done: counts.keyMade,
        title: 'Make an API key',
        why: 'With it, your own systems read what your organization may see here: clients, members, seats, outcomes.',
        action: linkButton(visit.at('/keys/new'), 'Make a key'),
      },
      {
        done: counts.keyUsed,
        title: 'Call the API with it',
        why: 'A new key is shown once, with a line to paste into a terminal. Not kept? Rotate it on its page: its successor is shown once too, with such a line.',
        action: html`<a href="${visit.at('/keys')}">Go to the keys</a><a href="${visit.console.apiUrl}/docs" rel="noreferrer">Read the reference</a>`,
      },
    );
  if (visit.may('org.webhooks.manage'))
    steps.push(
      {
        done: counts.webhookMade,
        title: 'Make a webhook',
        why: 'Your systems are told when a client starts or ends, or a seat is given or ended, within seconds.',
        action: linkButton(visit.at('/webhooks/new'), 'Make a webhook'),
      },
      {
        done: counts.delivered,
        title: 'See something arrive',
        why: 'A test event shows at once whether your system accepts what it gets. The first real event comes when a client or a seat starts or ends; its delivery is listed with every attempt.',
        action: waysToDeliver(visit, counts),
      },
    );
  const next = steps.findIndex(({ done }) => !done);
  if (next === -1) return nothing;
  return html`<section aria-labelledby="first"><h2 id="first">What to do first</h2><ol class="first-steps">${steps.map(
    ({ done, title, why, action }, index) => html`<li class="${done ? 'done' : ''}">
      <h3>${title}${done ? html`<span class="visually-hidden"> (done)</span>` : nothing}</h3>
      ${done ? nothing : html`<p>${why}</p>`}
      ${index === next ? html`<p class="actions">${action}</p>` : nothing}</li>`,
  )}</ol></section>`;
}

/** A test event, and the real one that a person can cause here. */
function waysToDeliver(visit: MemberVisit, { newestWebhookId, isToldOfSeats }: Overview): Html {
  if (newestWebhookId === null) return linkButton(visit.at('/webhooks/new'), 'Make a webhook');
  return html`${linkButton(visit.at(`/webhooks/${newestWebhookId}/test`), 'Send a test event')}${
    isToldOfSeats && visit.may('org.seats.manage')
      ? html`<a href="${visit.at('/clients/seats/give')}">Give a seat, a first real event</a>`
      : nothing
  }`;
}

function numbers(visit: MemberVisit, counts: Overview): Html {
  const tiles = [
    visit.may('org.keys.manage') && (['API keys', counts.liveKeys, 'live', '/keys'] as const),
    visit.may('org.webhooks.manage') &&
      (['Webhooks', counts.webhooks, waiting(counts.waitingDeliveries), '/webhooks'] as const),
    visit.may('org.members.read') && (['Members', counts.activeMembers, 'active', '/members'] as const),
    visit.may('org.clients.read') &&
      (['Client families', counts.activeFamilies, `${counts.seatsUsed} with a seat`, '/clients'] as const),
  ].filter((tile) => tile !== false);
  return html`<section aria-labelledby="numbers"><h2 id="numbers">${visit.organization.organizationName} now</h2>
    ${tiles.length === 0 ? html`<p>Your roles show you none of the organization’s numbers. An owner or administrator can give you more.</p>` : nothing}
    <ul class="tiles">${tiles.map(
      ([label, count, detail, path]) =>
        html`<li><a href="${visit.at(path)}"><span class="tile-label">${label}</span><span class="tile-count">${count.toLocaleString('en')}</span><span class="quiet">${detail}</span></a></li>`,
    )}</ul></section>`;
}

const waiting = (deliveries: number) =>
  deliveries === 0
    ? 'no delivery waits'
    : deliveries === 1
      ? 'one delivery waits'
      : `${deliveries.toLocaleString('en')}${deliveries < waitingCountedTo ? '' : ' or more'} deliveries wait`;
