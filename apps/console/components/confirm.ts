import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { type FormState, freshForm } from '../web/form.ts';
import type { Visit } from '../web/visit.ts';
import { form } from './form.ts';

/**
 * Renders the confirmation of an action that cannot be undone: a part of the page that opens
 * without a script, names the consequences, and contains the form. It is open when its form was
 * rejected.
 */
export function confirm(
  visit: Visit,
  parts: {
    /** The label that opens it: `Revoke API key…`. */
    summary: string;
    about?: string;
    /** What will happen, and to which object. */
    consequences: Child;
    action: string;
    button: string;
    fields?: Child;
    state?: FormState;
    kind?: 'primary' | 'danger';
  },
): Html {
  const { summary, about, consequences, action, button, fields, state = freshForm(), kind = 'danger' } = parts;
  const isOpen = state.problem !== null || Object.keys(state.problems).length > 0;
  const object = about ? html`<span class="visually-hidden"> ${about}</span>` : nothing;
  const inner = html`<summary class="button ${
    kind === 'danger' ? 'danger outline' : 'secondary'
  }">${summary}${object}</summary>
    <div class="consequences">${consequences}</div>
    ${form(visit, { action, state, fields, button, kind })}`;
  return isOpen
    ? html`<details class="confirm" open>${inner}</details>`
    : html`<details class="confirm">${inner}</details>`;
}
