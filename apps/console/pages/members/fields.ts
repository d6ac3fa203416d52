import { type Html, html } from '#runtime/pages/html.ts';
import { textField } from '../../components/form.ts';
import { type FormState, line, optionalLine } from '../../web/form.ts';

/** The fields of a member's form, rendered by `renderMemberFields`. */
export const memberFields = { name: line('a name', 200), title: optionalLine(200) };

export const renderMemberFields = (state: FormState): Html => html`
  ${textField(state, {
    name: 'name',
    label: 'Name',
    maxLength: 200,
    hint: 'Shown in the console and in the API.',
  })}
  ${textField(state, {
    name: 'title',
    label: 'Title (optional)',
    required: false,
    maxLength: 200,
    hint: 'For example “Paralegal” or “Mediator”.',
  })}`;
