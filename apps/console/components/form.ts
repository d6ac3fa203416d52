import { randomUUIDv7 } from 'node:crypto';
import { type FormState, listOf, textOf } from '../web/form.ts';
import { attributes, type Child, type Html, html, nothing } from '../web/html.ts';
import type { Visit } from '../web/visit.ts';
import { notice } from './notice.ts';

/**
 * The hidden fields of every form: the token that shows it is a page of ours, and the id of this
 * drawing of it.
 */
export const formTokenField = '_token';
export const formIdField = '_form';

/**
 * A form of ours: POST to a path of ours, with its hidden fields, the problem of the form as a
 * whole on top, and its button. `kind` colors the button; `danger` is for what cannot be taken
 * back. `secondary` stands beside the button, for example a link back.
 */
export function form(
  visit: Visit,
  parts: {
    action: string;
    state: FormState;
    fields?: Child;
    button: string;
    kind?: 'primary' | 'secondary' | 'danger';
    secondary?: Child;
    /** Further attributes of the form, for the script. */
    attributes?: Record<string, string | boolean>;
  },
): Html {
  const { action, state, fields, button, kind = 'primary', secondary } = parts;
  const kinds = { primary: '', secondary: 'secondary outline', danger: 'danger' };
  return html`<form method="post" action="${action}"${attributes(parts.attributes ?? {})}>
    ${state.problem === null ? nothing : notice('bad', state.problem)}
    ${hiddenFields(visit)}
    ${fields}
    <p class="actions"><button type="submit" class="${kinds[kind]}">${button}</button>${secondary}</p>
  </form>`;
}

/**
 * A form that is a button alone, in a row of a table or under a heading. `about` says to screen
 * readers what the button is about (`API key “Reports”`).
 */
export function buttonForm(
  visit: Visit,
  parts: {
    action: string;
    button: string;
    about?: string;
    values?: Record<string, string>;
    kind?: 'primary' | 'secondary' | 'danger';
    /** Of the button: in a part that comes again (`live`), it keeps the focus by it. */
    id?: string;
  },
): Html {
  const { action, button, about, values = {}, kind = 'secondary', id } = parts;
  const kinds = { primary: '', secondary: 'secondary outline', danger: 'danger outline' };
  return html`<form method="post" action="${action}" class="button-form">
    ${hiddenFields(visit)}
    ${Object.entries(values).map(([name, value]) => hiddenField(name, value))}
    <button type="submit"${attributes({ id })} class="${kinds[kind]}">${button}${about ? html`<span class="visually-hidden"> ${about}</span>` : nothing}</button>
  </form>`;
}

/** What `form` puts into each form, for one that is drawn by hand. */
export function hiddenFields(visit: Visit): Html {
  return html`${hiddenField(formTokenField, visit.formToken)}${hiddenField(formIdField, randomUUIDv7())}`;
}

export function hiddenField(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

interface Field {
  name: string;
  label: Child;
  /** A sentence under the label, before the field. */
  hint?: Child;
}

/** A line of text. What was typed stays in it when the form is drawn again, but for a password. */
export function textField(
  state: FormState,
  field: Field & {
    type?: 'text' | 'email' | 'password' | 'url' | 'search' | 'datetime-local' | 'date';
    /** What the browser may fill in: `username`, `current-password`, `one-time-code`, `off`. */
    autocomplete?: string;
    required?: boolean;
    maxLength?: number;
    inputMode?: 'numeric' | 'text' | 'email' | 'url';
    /** For what is typed letter by letter: codes, keys, addresses. */
    exact?: boolean;
    /**
     * Drawn as dots, for a secret that is no password: a browser neither fills its login's in nor
     * offers to keep what is pasted, as it does with `type=password`.
     */
    masked?: boolean;
    placeholder?: string;
    autofocus?: boolean;
  },
): Html {
  const {
    name,
    type = 'text',
    autocomplete = 'off',
    required = true,
    maxLength,
    inputMode,
    exact,
    masked,
    placeholder,
  } = field;
  const input = {
    id: idOf(name),
    name,
    type,
    autocomplete,
    required,
    maxlength: maxLength,
    inputmode: inputMode,
    placeholder,
    value: type === 'password' || masked ? null : textOf(state, name),
    autofocus: field.autofocus === true,
    ...(exact
      ? { spellcheck: 'false', autocapitalize: 'none', autocorrect: 'off', class: masked ? 'exact masked' : 'exact' }
      : {}),
    ...described(state, field),
  };
  return framed(state, field, html`<input${attributes(input)}>`);
}

/** Several lines of text. */
export function textArea(
  state: FormState,
  field: Field & { rows?: number; required?: boolean; maxLength?: number; exact?: boolean },
): Html {
  const { name, rows = 3, required = true, maxLength, exact } = field;
  const area = {
    id: idOf(name),
    name,
    rows,
    required,
    maxlength: maxLength,
    ...described(state, field),
    ...(exact ? { spellcheck: 'false', autocapitalize: 'none', class: 'exact' } : {}),
  };
  return framed(state, field, html`<textarea${attributes(area)}>${textOf(state, name)}</textarea>`);
}

/** One of several, as a list that opens. */
export function selectField(
  state: FormState,
  field: Field & { options: readonly { value: string; label: string }[]; required?: boolean },
): Html {
  const { name, options, required = true } = field;
  const chosen = textOf(state, name);
  return framed(
    state,
    field,
    html`<select${attributes({ id: idOf(name), name, required, ...described(state, field) })}>
      ${options.map(({ value, label }) => html`<option${attributes({ value, selected: value === chosen })}>${label}</option>`)}
    </select>`,
  );
}

interface Choice {
  value: string;
  label: Child;
  hint?: Child;
  disabled?: boolean;
}

/** Any of several (`checkbox`), or one of a few (`radio`), all in sight under one legend. */
export function choiceField(
  state: FormState,
  field: Field & { kind: 'checkbox' | 'radio'; choices: readonly Choice[] },
): Html {
  const { name, label, hint, kind, choices } = field;
  const chosen = new Set(listOf(state, name));
  return html`<fieldset class="choices"${attributes({ id: idOf(name), ...described(state, field), 'aria-invalid': null })}>
    <legend>${label}</legend>
    ${hint ? html`<small id="${idOf(name)}-hint">${hint}</small>` : nothing}
    ${problemLine(state, name)}
    ${choices.map((choice, index) => {
      const id = `${idOf(name)}-${index}`;
      const input = { type: kind, id, name, value: choice.value, checked: chosen.has(choice.value) };
      const about = { disabled: choice.disabled === true, 'aria-describedby': choice.hint ? `${id}-hint` : null };
      return html`<div class="choice"><input${attributes({ ...input, ...about })}><label for="${id}">${choice.label}</label>
        ${choice.hint ? html`<small id="${id}-hint">${choice.hint}</small>` : nothing}</div>`;
    })}
  </fieldset>`;
}

/** A box to tick; it is sent as `on`. */
export function checkboxField(state: FormState, field: Field & { required?: boolean }): Html {
  const { name, label, hint, required = false } = field;
  const input = { type: 'checkbox', id: idOf(name), name, required, checked: textOf(state, name) === 'on' };
  return html`<div class="field choice"><input${attributes({ ...input, ...described(state, field) })}><label for="${idOf(name)}">${label}</label>
    ${hint ? html`<small id="${idOf(name)}-hint">${hint}</small>` : nothing}${problemLine(state, name)}</div>`;
}

function framed(state: FormState, { name, label, hint }: Field, input: Html): Html {
  return html`<div class="field"><label for="${idOf(name)}">${label}</label>
    ${hint ? html`<small id="${idOf(name)}-hint">${hint}</small>` : nothing}
    ${input}${problemLine(state, name)}</div>`;
}

function problemLine(state: FormState, name: string): Html {
  const problem = state.problems[name];
  return problem === undefined ? nothing : html`<small class="problem" id="${idOf(name)}-problem">${problem}</small>`;
}

function described(state: FormState, { name, hint }: Field): Record<string, string | null> {
  const isWrong = state.problems[name] !== undefined;
  const ids = [hint ? `${idOf(name)}-hint` : null, isWrong ? `${idOf(name)}-problem` : null].filter(
    (id) => id !== null,
  );
  return { 'aria-describedby': ids.length > 0 ? ids.join(' ') : null, 'aria-invalid': isWrong ? 'true' : null };
}

const idOf = (name: string) => `field-${name}`;
