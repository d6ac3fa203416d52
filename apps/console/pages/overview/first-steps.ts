import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { linkButton } from '../../components/link.ts';
import type { MemberVisit } from '../../web/visit.ts';
import type { Overview } from './query.ts';

interface Step {
  done: boolean;
  title: string;
  why: string;
  path: string;
  button: string;
  /** A link beside the button. */
  other?: Html | null;
}

/** Renders the member's steps to a first delivery, until all are completed once. */
export function firstSteps(visit: MemberVisit, overview: Overview): Html {
  const steps = [
    ...(visit.may('org.keys.manage') ? keySteps(overview) : []),
    ...(visit.may('org.webhooks.manage') ? webhookSteps(visit, overview) : []),
  ];
  const next = steps.findIndex(({ done }) => !done);
  if (next === -1) return nothing;
  const { hasCreatedKey, validKeys, hasCreatedWebhook, webhooks } = overview;
  const hasOlder = (validKeys > 0 && !hasCreatedKey) || (webhooks > 0 && !hasCreatedWebhook);
  const note = html`<p class="quiet">API keys and webhooks from before your first sign-in don’t count here.</p>`;
  return html`<section aria-labelledby="first"><h2 id="first">Get started</h2>${hasOlder ? note : nothing}
    <ol class="first-steps">${steps.map((step, index) => renderStep(visit, step, index === next))}</ol></section>`;
}

const keySteps = ({ hasCreatedKey, hasUsedKey }: Overview): Step[] => [
  {
    done: hasCreatedKey,
    title: 'Create an API key',
    why: 'Your systems use it to read clients, members, seats and outcomes.',
    path: '/keys/new',
    button: 'Create API key',
  },
  {
    done: hasUsedKey,
    title: 'Call the API',
    why:
      'A new key comes with a command that you can run in a terminal. If you didn’t save the key, ' +
      'rotate it to get a new one.',
    path: '/keys',
    button: 'View API keys',
  },
];

function webhookSteps(visit: MemberVisit, overview: Overview): Step[] {
  const { hasCreatedWebhook, hasDelivered, newestWebhookId, hasSeatWebhook } = overview;
  const maySendSeatEvent = newestWebhookId !== null && hasSeatWebhook && visit.may('org.seats.manage');
  return [
    {
      done: hasCreatedWebhook,
      title: 'Add a webhook',
      why: 'Your system receives an event within seconds when a client starts or ends, or a seat is assigned or ended.',
      path: '/webhooks/new',
      button: 'Add webhook',
    },
    {
      done: hasDelivered,
      title: 'Receive an event',
      why: 'Send a test event to check that your system accepts events.',
      path: newestWebhookId === null ? '/webhooks/new' : `/webhooks/${newestWebhookId}/test`,
      button: newestWebhookId === null ? 'Add a webhook first' : 'Send test event',
      other: maySendSeatEvent
        ? html`<a href="${visit.at('/clients/seats/assign')}">Assign a seat to send a real event</a>`
        : null,
    },
  ];
}

function renderStep(visit: MemberVisit, step: Step, isNext: boolean): Html {
  const { done, title, why, path, button, other } = step;
  if (done)
    return html`<li class="done"><div><h3>${title}<span class="visually-hidden"> (completed)</span></h3></div></li>`;
  return html`<li><div><h3>${title}</h3><p class="quiet">${why}</p></div>
    <p class="actions">${other}${linkButton(visit.at(path), button, isNext ? 'primary' : 'secondary')}</p></li>`;
}
