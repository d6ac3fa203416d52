import { type ErrorCode, errorCodes, errorHelp, errorStatus } from '#domain/contract/errors.ts';
import { attributes, type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { versions } from '../openapi/changes.ts';
import type { Read, Reference, ReferenceEvent } from './document.ts';
import type { Field } from './fields.ts';
import { highlight } from './highlight.ts';
import { type Chapter, inlineMarkdown, markdown } from './markdown.ts';
import { languages, samples } from './samples.ts';
import { type Tool, tools, toolsText } from './tools.ts';

/** One row of the page: text, and the code that stands beside it. */
interface Row {
  id: string;
  text: Child;
  code?: Child;
}

export const row = ({ id, text, code }: Row): Html =>
  html`<section id="${id}" class="row"><div class="text">${text}</div>
<div class="code"><div>${code}</div></div></section>`;

/** A box of code with its title. `kind` is a class, such as the language of a sample. */
export const codeBox = (title: Child, code: string, kind = ''): Html =>
  html`<figure class="box ${kind}"><figcaption>${title}</figcaption><pre>${highlight(code)}</pre></figure>`;

const json = (value: unknown): string => JSON.stringify(value, null, 2);

const codeTitles: Record<string, string> = { bash: 'Shell', http: 'Headers', json: 'JSON', js: 'Node.js' };

export const chapterRow = ({ id, heading, text, code }: Chapter): Html =>
  row({
    id,
    text: html`<h2>${heading}</h2>${text}${
      id === 'errors'
        ? html`<p><a href="#error-codes">Every code, when it is sent, and what to do about it</a></p>`
        : nothing
    }`,
    code: code.map((each) => codeBox(codeTitles[each.language] ?? each.language, each.text)),
  });

/** Renders what all reads have in common. */
export const readsRow = ({ reads, readParameters, readHeaders, readStatuses }: Reference): Html =>
  row({
    id: 'reads',
    text: html`<h2>Reads</h2>
<p>Each is a <code>GET</code> request without a body and without query parameters.</p>
<h3>Parameters</h3>${fieldList(readParameters)}
<h3>Response headers</h3>${fieldList(readHeaders)}
<h3>Statuses</h3>${fieldList(readStatuses)}`,
    code: list(
      'Endpoints',
      reads.map(({ id, path }) => html`<a href="#${id}"><b class="get">GET</b> <code>${path}</code></a>`),
    ),
  });

/** Renders fields, each with its own in turn: those of the first level are open. */
const fieldList = (all: readonly Field[], isOpen = true): Html =>
  html`<dl class="fields">${all.map(
    ({ name, type, text, fields }) =>
      html`<div><dt><code>${name}</code>${type && html` <small>${type}</small>`}</dt><dd>${
        text && html`<p>${inlineMarkdown(text)}</p>`
      }${
        fields.length === 0
          ? nothing
          : html`<details${attributes({ open: isOpen })}><summary>Fields of <code>${name}</code></summary>${fieldList(
              fields,
              false,
            )}
</details>`
      }</dd></div>`,
  )}</dl>`;

const list = (title: string, entries: readonly Html[]): Html =>
  html`<figure class="box"><figcaption>${title}</figcaption>
<ul>${entries.map((each) => html`<li>${each}</li>`)}</ul></figure>`;

/** Renders one read, with a sample in each language: the style sheet shows that of the chosen one. */
export function readRow(read: Read): Html {
  const code = samples(read);
  return row({
    id: read.id,
    text: html`<h3 class="title">${read.summary}</h3>
<p class="path"><b class="get">GET</b> <code>${read.path}</code></p>
${markdown(read.description)}
<h4>Response</h4>${markdown(read.body)}${fieldList(read.fields)}`,
    code: html`${languages.map(({ id, name }) =>
      codeBox(name, code[id], `sample ${id}`),
    )}<form class="try" data-path="${read.path}" hidden><button>Send request</button><output></output></form>
${read.examples.map(({ summary, value }) => codeBox(html`<b class="good">200</b> ${summary}`, json(value)))}`,
  });
}

/** Renders what all events have in common. */
export const eventsRow = (reference: Reference): Html => {
  const { events, eventSummary, eventHeaders, eventHeaderExample, eventFields, eventStatuses } = reference;
  return row({
    id: 'events',
    text: html`<h2>Events</h2>
<p>${inlineMarkdown(eventSummary)} <a href="#webhooks">Webhooks</a> says how they are sent and how to check them.</p>
<h3>Headers</h3>${fieldList(eventHeaders)}
<h3>Body</h3>${fieldList(eventFields)}
<h3>Your response</h3>${fieldList(eventStatuses)}`,
    code: html`${list(
      'Event types',
      events.map(({ id, type }) => html`<a href="#${id}"><b class="post">POST</b> <code>${type}</code></a>`),
    )}${codeBox('Headers of a delivery', eventHeaderExample)}`,
  });
};

export const eventRow = (event: ReferenceEvent): Html =>
  row({
    id: event.id,
    text: html`<h3 class="title">${event.summary}</h3>
<p class="path"><b class="post">POST</b> <code>${event.type}</code></p>
${markdown(event.description)}<h4>Fields of <code>data</code></h4>${fieldList(event.fields)}`,
    code: event.examples.map(({ summary, value }) => codeBox(summary, json(value))),
  });

/** Renders what all error responses have in common. */
export const errorsRow = ({ errorFields }: Reference): Html =>
  row({
    id: 'error-codes',
    text: html`<h2>Error codes</h2>
<p>Every error response is JSON with these fields.</p>${fieldList(errorFields)}`,
  });

/** Renders an error code: when it is sent, what to do about it, and an example. */
export function errorRow(code: ErrorCode, { errorExamples }: Reference): Html {
  const examples = errorExamples.filter((each) => each.code === code);
  const [example] = examples;
  const { meaning, remedy } = errorHelp[code];
  return row({
    id: errorId(code),
    text: html`<h3 class="title"><code>${code}</code> <small>${errorStatus[code]}</small></h3>
<p>${inlineMarkdown(meaning)}.</p><p><b>What to do:</b> ${inlineMarkdown(remedy)}</p>${
      examples.length < 2
        ? nothing
        : html`<details><summary>Messages of <code>${code}</code></summary><ul>${examples.map(
            ({ when, body }) => html`<li>${inlineMarkdown(when)}: <q>${body.message}</q></li>`,
          )}</ul></details>`
    }`,
    code: example
      ? codeBox(
          html`<b class="bad">${example.status}</b> <span>${inlineMarkdown(example.when)}</span>`,
          json(example.body),
        )
      : null,
  });
}

export const errorId = (code: ErrorCode): string => `error-${code}`;

export const errorRows = (reference: Reference): Html[] => errorCodes.map((code) => errorRow(code, reference));

const toolRow = ({ id, heading, text, title, code }: Tool): Html =>
  row({
    id,
    text: html`<h3 class="title">${heading}</h3>${markdown(text)}`,
    code: codeBox(title, code),
  });

export const toolRows = (): Html[] => [
  row({
    id: 'tools',
    text: html`<h2>Clients and tools</h2><p>${inlineMarkdown(toolsText)}</p>`,
  }),
  ...tools.map(toolRow),
];

export const changesRow = (): Html =>
  row({
    id: 'changelog',
    text: html`<h2>Changelog</h2>${versions.map(
      ({ version, changes }) =>
        html`<h3 class="title">${version}</h3>
<ul>${changes.map((each) => html`<li>${inlineMarkdown(each)}</li>`)}</ul>`,
    )}`,
  });
