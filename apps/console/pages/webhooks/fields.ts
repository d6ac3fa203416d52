import { z } from 'zod';
import { type EventType, eventDescriptions, eventTypes } from '#domain/contract/events.ts';
import { checkUrl } from '#domain/webhooks/address/url.ts';
import { urlProblems } from '#domain/webhooks/address/url-problems.ts';
import { descriptionMaxCharacters, postsPerSecondAtMost } from '#domain/webhooks/limits.ts';
import { buildTestEvent } from '#domain/webhooks/test-event.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { checkboxField, choiceField, textField } from '../../components/form.ts';
import { checkbox, choices, type FormState, getText, line, optionalLine } from '../../web/form.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Validates the form of a webhook. The domain validates each field and the URL's address again. */
export const webhookForm = z.object({
  url: line('a URL', 4_000),
  eventTypes: choices(eventTypes as [EventType, ...EventType[]]).min(1, 'Choose at least one event type.'),
  description: optionalLine(descriptionMaxCharacters),
  ordered: checkbox,
  postsPerSecond: z
    .string()
    .trim()
    .regex(/^(?:[1-9]\d?|100)?$/, `Enter a whole number from 1 to ${postsPerSecondAtMost}, or leave it empty.`)
    .default('')
    .transform((text) => (text === '' ? null : Number(text))),
  allowSameUrl: checkbox,
  removeHeaders: checkbox,
});

/**
 * Returns the state of a rejected form with the problem of its URL, so that a person reads the
 * problems of all fields at once: the domain checks the URL only after the form is complete.
 */
export function withUrlProblem({ console }: MemberVisit, state: FormState): FormState {
  const url = getText(state, 'url').trim();
  if (Object.keys(state.problems).length === 0 || state.problems.url !== undefined || url === '') return state;
  const target = checkUrl(url, console.webhookAllow);
  // In the order of the fields, which is the order of the list of problems.
  return target.ok ? state : { ...state, problems: { url: urlProblems[target.cause], ...state.problems } };
}

/** Renders the fields of a webhook, with the meaning and an example of each event type. */
export function renderWebhookFields(visit: MemberVisit, state: FormState): Html {
  return html`
    ${textField(state, {
      name: 'url',
      label: 'Endpoint URL',
      type: 'url',
      inputMode: 'url',
      maxLength: 2_000,
      exact: true,
      placeholder: 'https://hooks.example.com/events',
      hint: urlHint(visit),
    })}
    ${confirmation(state, 'allowSameUrl', 'Send each event to this URL twice')}
    ${confirmation(state, 'removeHeaders', 'Remove the custom headers')}
    ${choiceField(state, {
      name: 'eventTypes',
      label: 'Events',
      kind: 'checkbox',
      choices: eventTypes.map((type) => ({
        value: type,
        label: html`<code>${type}</code>`,
        hint: eventDescriptions[type],
      })),
    })}
    <details class="aside"><summary>Example events</summary>
      ${eventTypes.map((type) => html`<h3><code>${type}</code></h3>${renderExample(visit, type)}`)}
      <p>The <code>id</code> stays the same on every retry, so that your system can ignore duplicates. Real events
        have no <code>test</code> field.</p>
    </details>
    ${textField(state, {
      name: 'description',
      label: 'Description (optional)',
      required: false,
      maxLength: descriptionMaxCharacters,
      hint: 'The system that receives the events, for example “Case management”.',
    })}
    ${checkboxField(state, {
      name: 'ordered',
      label: 'Deliver the events of each client and each seat in order',
      hint:
        'The next event of a client or seat waits until the one before is delivered or has failed. Other clients and ' +
        'seats are not delayed.',
    })}
    ${textField(state, {
      name: 'postsPerSecond',
      label: 'Requests per second (optional)',
      required: false,
      inputMode: 'numeric',
      maxLength: 3,
      hint:
        `The most requests that your receiver gets in a second, 1 to ${postsPerSecondAtMost}. After a pause, a few ` +
        'come at once. What is above the limit waits and is not lost.',
    })}`;
}

/** Renders the confirmation of what a URL would do, once it was rejected. */
function confirmation(state: FormState, name: 'allowSameUrl' | 'removeHeaders', label: string): Html {
  if (state.problems[name] === undefined && getText(state, name) !== 'on') return nothing;
  return checkboxField(state, { name, label });
}

/** States which URLs are accepted: WEBHOOK_ALLOW also admits http, for the addresses it lists. */
const urlHint = ({ console: { webhookAllow } }: MemberVisit): string =>
  webhookAllow.rules.length === 0
    ? 'An https URL that the internet can reach, without a user name, password or fragment.'
    : 'An https URL that the internet can reach, or an http or https URL at an address that this ' +
      'installation allows. No user name, password or fragment.';

/** Returns an example of a request body, indented. */
export function renderExample({ organization, console }: MemberVisit, type: EventType): Html {
  const { body } = buildTestEvent(type, organization.organizationId, console.now());
  const indented = JSON.stringify(JSON.parse(body), null, 2);
  return html`<pre class="example" tabindex="0" role="region" aria-label="Example of ${type}"><code>${
    indented
  }</code></pre>`;
}
