import { randomUUIDv7 } from 'node:crypto';
import { readableEmail } from '#domain/contract/email.ts';
import { plainText } from '#domain/contract/unseen-characters.ts';
import { attributes, type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { type FormState, freshForm, getText, getTexts } from '../web/form.ts';
import type { Visit } from '../web/visit.ts';
import { notice } from './notice.ts';

/** The hidden fields of every form: the session's token and the id of this rendering. */
export const formTokenField = '_token';
export const formIdField = '_form';

/**
 * Renders a POST form with its hidden fields, the problem of the whole form, and its button. The
 * kind `danger` is for what cannot be undone.
 */
export function form(
  visit: Visit,
  parts: {
    /** The path that the form is sent to. By default that of its page. */
    action?: string;
    state?: FormState;
    fields?: Child;
    button: string;
    kind?: 'primary' | 'secondary' | 'danger';
    /** The path behind Cancel. */
    cancel?: string;
    /** A link beside the button. */
    secondary?: Child;
    /** Further attributes of the form, for the script. */
    attributes?: Record<string, string | boolean>;
  },
): Html {
  const { action = visit.path, state = freshForm(), fields, button, kind = 'primary', cancel, secondary } = parts;
  const formAttributes = attributes({ ...stepUpMark(visit, action), ...parts.attributes });
  const submit = attributes({ type: 'submit', class: kind === 'primary' ? null : kind });
  return html`<form method="post" action="${action}"${formAttributes}>
    ${problemNotice(state)}
    ${hiddenFields(visit)}
    ${fields}
    <p class="actions"><button${submit}>${plainText(button)}</button>${
      cancel === undefined ? secondary : html`<a href="${cancel}">Cancel</a>`
    }</p>
  </form>`;
}

export const problemNotice = ({ problem }: FormState): Html => (problem === null ? nothing : notice('bad', problem));

/**
 * Renders a form that is one button. `about` names its object for screen readers
 * (`API key “Reports”`).
 */
export function buttonForm(
  visit: Visit,
  parts: {
    action: string;
    button: string;
    about?: string;
    values?: Record<string, string>;
    kind?: 'primary' | 'secondary' | 'danger';
    /** Of the button: a refreshing part makes no button of another id from it. */
    id?: string;
  },
): Html {
  const { action, button, about, values = {}, kind = 'secondary', id } = parts;
  const classes = { primary: null, secondary: 'secondary', danger: 'danger outline' };
  const object = about ? html`<span class="visually-hidden"> ${about}</span>` : nothing;
  return html`<form method="post" action="${action}" class="button-form"${attributes(stepUpMark(visit, action))}>
    ${hiddenFields(visit)}
    ${Object.entries(values).map(([name, value]) => hiddenField(name, value))}
    <button type="submit"${attributes({ id, class: classes[kind] })}>${button}${object}</button>
  </form>`;
}

/** Marks a form that may ask for a second factor: the script asks first, in a dialog. */
const stepUpMark = ({ console }: Visit, action: string) => ({ 'data-step-up': console.mayStepUp(action) });

/** Renders the hidden fields of `form`, for forms rendered without it. */
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

/** Renders a line of text. A form that is rendered again keeps it, except a password. */
export function textField(
  state: FormState,
  field: Field & {
    type?: 'text' | 'password' | 'url' | 'search' | 'datetime-local' | 'date';
    /** What the browser may fill in: `username`, `current-password`, `one-time-code`, `off`. */
    autocomplete?: string;
    required?: boolean;
    maxLength?: number;
    /**
     * `email` is for addresses, with `type` text: browsers reject and rewrite some of what the console
     * accepts in a field of their type for addresses.
     */
    inputMode?: 'numeric' | 'text' | 'email' | 'url';
    /** For exact input: codes, keys, addresses. */
    exact?: boolean;
    /**
     * Shown as dots, for a secret that is not a password: with `type=password` browsers fill in
     * their own and offer to save what is pasted.
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
    id: getFieldId(name),
    name,
    type,
    autocomplete,
    required,
    maxlength: maxLength,
    inputmode: inputMode,
    placeholder,
    value:
      type === 'password' || masked
        ? null
        : inputMode === 'email'
          ? readableEmail(getText(state, name))
          : getText(state, name),
    autofocus: field.autofocus === true || state.problems[name] !== undefined,
    ...(exact
      ? { spellcheck: 'false', autocapitalize: 'none', autocorrect: 'off', class: masked ? 'exact masked' : 'exact' }
      : {}),
    ...described(state, field),
  };
  return framed(state, field, html`<input${attributes(input)}>${type === 'password' ? showButton(name) : nothing}`);
}

/** Renders a text of several lines, for exact input: one address or name on each. */
export function linesField(state: FormState, field: Field & { rows: number; maxLength: number }): Html {
  const { name, rows, maxLength } = field;
  const area = { id: getFieldId(name), name, rows, maxlength: maxLength };
  const autofocus = state.problems[name] !== undefined;
  const exact = { spellcheck: 'false', autocapitalize: 'none', autocorrect: 'off', class: 'exact' };
  const input = attributes({ ...area, autofocus, ...exact, ...described(state, field) });
  // A browser drops the first line break after the tag.
  return framed(state, field, html`<textarea${input}>\n${getText(state, name)}</textarea>`);
}

/** Renders the button that shows what was typed; the script reveals it. */
const showButton = (name: string): Html =>
  html`<button type="button" class="link" data-show="${getFieldId(name)}" hidden>Show password</button>`;

/** Renders a choice of one as a list that opens. */
export function selectField(
  state: FormState,
  field: Field & { options: readonly { value: string; label: string }[]; required?: boolean },
): Html {
  const { name, options, required = true } = field;
  const chosen = getText(state, name);
  return framed(
    state,
    field,
    html`<select${attributes({ id: getFieldId(name), name, required, ...described(state, field) })}>
      ${options.map(
        ({ value, label }) => html`<option${attributes({ value, selected: value === chosen })}>${label}</option>`,
      )}
    </select>`,
  );
}

interface Choice {
  value: string;
  label: Child;
  hint?: Child;
  disabled?: boolean;
}

/** Renders a choice of any (`checkbox`) or one (`radio`), all visible under one legend. */
export function choiceField(
  state: FormState,
  field: Field & { kind: 'checkbox' | 'radio'; choices: readonly Choice[] },
): Html {
  const { name, label, hint, kind, choices } = field;
  const chosen = new Set(getTexts(state, name));
  const group = attributes({ id: getFieldId(name), ...described(state, field), 'aria-invalid': null });
  return html`<fieldset class="choices"${group}>
    <legend>${label}</legend>
    ${hint ? html`<small id="${getFieldId(name)}-hint">${hint}</small>` : nothing}
    ${problemLine(state, name)}
    ${choices.map((choice, index) => {
      const id = `${getFieldId(name)}-${index}`;
      const input = { type: kind, id, name, value: choice.value, checked: chosen.has(choice.value) };
      const about = { disabled: choice.disabled === true, 'aria-describedby': choice.hint ? `${id}-hint` : null };
      return html`<div class="choice">
        <input${attributes({ ...input, ...about })}><label for="${id}">${choice.label}</label>
        ${choice.hint ? html`<small id="${id}-hint">${choice.hint}</small>` : nothing}</div>`;
    })}
  </fieldset>`;
}

/** Renders a checkbox; its value is `on`. */
export function checkboxField(state: FormState, field: Field & { required?: boolean }): Html {
  const { name, label, hint, required = false } = field;
  const input = { type: 'checkbox', id: getFieldId(name), name, required, checked: getText(state, name) === 'on' };
  return html`<div class="field choice">
    <input${attributes({ ...input, ...described(state, field) })}><label for="${getFieldId(name)}">${label}</label>
    ${hint ? html`<small id="${getFieldId(name)}-hint">${hint}</small>` : nothing}${problemLine(state, name)}</div>`;
}

function framed(state: FormState, { name, label, hint }: Field, input: Html): Html {
  return html`<div class="field"><label for="${getFieldId(name)}">${label}</label>
    ${hint ? html`<small id="${getFieldId(name)}-hint">${hint}</small>` : nothing}
    ${input}${problemLine(state, name)}</div>`;
}

function problemLine(state: FormState, name: string): Html {
  const problem = state.problems[name];
  return problem === undefined
    ? nothing
    : html`<small class="problem" id="${getFieldId(name)}-problem">${problem}</small>`;
}

function described(state: FormState, { name, hint }: Field): Record<string, string | null> {
  const isWrong = state.problems[name] !== undefined;
  const ids = [hint ? `${getFieldId(name)}-hint` : null, isWrong ? `${getFieldId(name)}-problem` : null].filter(
    (id) => id !== null,
  );
  return { 'aria-describedby': ids.length > 0 ? ids.join(' ') : null, 'aria-invalid': isWrong ? 'true' : null };
}

const getFieldId = (name: string) => `field-${name}`;
