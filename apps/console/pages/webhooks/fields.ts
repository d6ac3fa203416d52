import { z } from 'zod';
import { type EventType, eventMeaning, eventTypes } from '#domain/contract/events.ts';
import { descriptionMaxCharacters } from '#domain/webhooks/limits.ts';
import { buildTestEvent } from '#domain/webhooks/test-event.ts';
import { choiceField, textField } from '../../components/form.ts';
import { choices, type FormState, line, optionalLine } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** What a webhook is made of; the domain judges each again, and says what is wrong with a URL. */
export const webhookFields = {
  url: line('The URL', 4_000),
  eventTypes: choices(eventTypes as [EventType, ...EventType[]]).min(
    1,
    'Choose what to be told of: one event type at least.',
  ),
  description: optionalLine('The description', descriptionMaxCharacters),
};

/** The fields of a webhook, with what each type means and looks like. */
export function drawWebhookFields(visit: MemberVisit, state: FormState): Html {
  return html`
    ${textField(state, {
      name: 'url',
      label: 'URL',
      type: 'url',
      inputMode: 'url',
      maxLength: 2_000,
      exact: true,
      placeholder: 'https://hooks.example.com/events',
      hint: 'Where your system takes events: an https address that the internet can reach. Addresses inside a network, plain http, user names and fragments are refused.',
    })}
    ${choiceField(state, {
      name: 'eventTypes',
      label: 'What to be told of',
      kind: 'checkbox',
      choices: eventTypes.map((type) => ({
        value: type,
        label: html`<code>${type}</code>`,
        hint: eventMeaning[type],
      })),
    })}
    <details class="aside"><summary>What an event looks like</summary>
      ${eventTypes.map((type) => html`<h3><code>${type}</code></h3>${exampleOf(visit, type)}`)}
      <p>The <code>id</code> is the same on every retry, so a repeat is known by it. Real events do not have <code>test</code>.</p>
    </details>
    ${textField(state, {
      name: 'description',
      label: 'Description',
      required: false,
      maxLength: descriptionMaxCharacters,
      hint: 'What takes the events, so that others know: “Case management”, “Billing”. It may stay empty.',
    })}`;
}

/** A body as it is posted, laid out for reading. */
export function exampleOf({ organization, console }: MemberVisit, type: EventType): Html {
  const { body } = buildTestEvent(type, organization.organizationId, console.now());
  return html`<pre class="example" tabindex="0" role="region" aria-label="An example of ${type}"><code>${JSON.stringify(JSON.parse(body), null, 2)}</code></pre>`;
}

/** The same check as `z.object(webhookFields)`, for the form's route. */
export const webhookForm = z.object(webhookFields);
