import { type ErrorCode, errorCodes, errorHelp, errorStatus } from '#domain/contract/errors.ts';
import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { versions } from '../openapi/changes.ts';
import type { Read, Reference, ReferenceEvent, Schema, Status } from './document.ts';
import { describeType, fields, parameters } from './fields.ts';
import { highlight } from './highlight.ts';
import { type Chapter, inlineMarkdown, markdown } from './markdown.ts';
import { languages, samples } from './samples.ts';
import { type Tool, tools } from './tools.ts';

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
export const codeBox = (title: Child, code: string, { label, kind = '' }: { label: string; kind?: string }): Html =>
  html`<figure class="box ${kind}"><figcaption>${title}</figcaption>
<pre tabindex="0" role="group" aria-label="${label}"><code>${highlight(code)}</code></pre></figure>`;

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
    code: code.map((each) => {
      const title = codeTitles[each.language] ?? each.language;
      return codeBox(title, each.text, { label: `${heading}: ${title}` });
    }),
  });

/** Renders what all reads have in common. */
export const readsRow = ({ reads, readParameters, readHeaders, readStatuses }: Reference): Html =>
  row({
    id: 'reads',
    text: html`<h2>Reads</h2>
<p>Each is a <code>GET</code> request without a body and without query parameters.</p>
<h3>Parameters</h3>${parameters(readParameters)}
<h3>Response headers</h3>${parameters(readHeaders)}
<h3>Statuses</h3>${statusList(readStatuses)}`,
    code: list(
      'Endpoints',
      reads.map(({ id, path }) => html`<a href="#${id}"><b class="get">GET</b> <code>${path}</code></a>`),
    ),
  });

const statusList = (all: readonly Status[]): Html =>
  html`<dl class="fields">${all.map(
    ({ status, description }) =>
      html`<div><dt><code>${status}</code></dt><dd><p>${inlineMarkdown(description)}</p></dd></div>`,
  )}</dl>`;

const list = (title: string, entries: readonly Html[]): Html =>
  html`<figure class="box"><figcaption>${title}</figcaption>
<ul>${entries.map((each) => html`<li>${each}</li>`)}</ul></figure>`;

/** Renders one read, with a sample in each language: the style sheet shows that of the chosen one. */
export function readRow(read: Read, { resolve }: Reference, baseUrl: string): Html {
  const code = samples(read, baseUrl);
  return row({
    id: read.id,
    text: html`<h3 class="title">${read.summary}</h3>
<p class="path"><b class="get">GET</b> <code>${read.path}</code></p>
${markdown(read.description)}
<h4>Response</h4>${describeBody(read.schema, resolve)}${fields(read.schema, resolve)}`,
    code: html`${languages.map(({ id, name }) =>
      codeBox(name, code[id], { kind: `sample ${id}`, label: `${read.summary}: ${name}` }),
    )}<form class="try" data-path="${read.path}" hidden><button>Send request</button><output></output></form>
${read.examples.map(({ summary, value }) =>
  codeBox(html`<b class="good">200</b> ${summary}`, json(value), { label: `${read.summary}: ${summary}` }),
)}`,
  });
}

/** Describes a list, whose fields are those of its elements. */
function describeBody(schema: Schema, resolve: Reference['resolve']): Html {
  const { items, description } = resolve(schema);
  if (items === undefined) return nothing;
  return html`<p>A ${describeType(schema, resolve)}. ${inlineMarkdown(description ?? '')} Each has:</p>`;
}

/** Renders what all events have in common. */
export const eventsRow = ({ events, eventSummary, eventHeaders, eventStatuses, resolve }: Reference): Html =>
  row({
    id: 'events',
    text: html`<h2>Events</h2>
<p>${inlineMarkdown(eventSummary)} <a href="#webhooks">Webhooks</a> says how they are sent and how to check them.</p>
<h3>Headers</h3>${parameters(eventHeaders)}
<h3>Body</h3>${fields(describeEnvelope(events, resolve), resolve)}
<h3>Your response</h3>${statusList(eventStatuses)}`,
    code: html`${list(
      'Event types',
      events.map(({ id, type }) => html`<a href="#${id}"><b class="post">POST</b> <code>${type}</code></a>`),
    )}${codeBox('Headers of a delivery', eventHeaders.map(({ name, example }) => `${name}: ${example}`).join('\n'), {
      label: 'Headers of a delivery',
    })}`,
  });

/** Returns the body of every event: its members are the same but for the values of `type` and what `data` has. */
function describeEnvelope(events: Reference['events'], resolve: Reference['resolve']): Schema {
  const envelope = resolve(events[0]?.schema ?? {});
  const type = { type: 'string', description: 'One of the event types.' };
  const data = { type: 'object', description: 'What happened, with the fields of its type.' };
  return { ...envelope, properties: { ...envelope.properties, type, data } };
}

const findData = ({ schema }: ReferenceEvent, resolve: Reference['resolve']): Schema =>
  resolve(schema).properties?.data ?? {};

export const eventRow = (event: ReferenceEvent, { resolve }: Reference): Html =>
  row({
    id: event.id,
    text: html`<h3 class="title">${event.summary}</h3>
<p class="path"><b class="post">POST</b> <code>${event.type}</code></p>
${markdown(event.description)}<h4>Fields of <code>data</code></h4>${fields(findData(event, resolve), resolve)}`,
    code: event.examples.map(({ summary, value }) =>
      codeBox(summary, json(value), { label: `${event.type}: ${summary}` }),
    ),
  });

/** Renders what all error responses have in common. */
export const errorsRow = ({ errorSchema, resolve }: Reference): Html =>
  row({
    id: 'error-codes',
    text: html`<h2>Error codes</h2>
<p>Every error response is JSON with these fields.</p>${fields(errorSchema, resolve)}`,
  });

/** Renders an error code: when it is sent, what to do about it, and an example. */
export function errorRow(code: ErrorCode, { errorExamples }: Reference): Html {
  const examples = errorExamples.filter((each) => each.code === code);
  const [example] = examples;
  const { meaning, remedy } = errorHelp[code];
  return row({
    id: errorId(code),
    text: html`<h3 class="title"><code>${code}</code> <span class="type">${errorStatus[code]}</span></h3>
<p>${inlineMarkdown(meaning)}.</p><p><b>What to do:</b> ${inlineMarkdown(remedy)}</p>${
      examples.length < 2
        ? nothing
        : html`<details><summary>Messages of <code>${code}</code></summary><ul>${examples.map(
            ({ when, body }) => html`<li>${inlineMarkdown(when)}: <q>${(body as { message: string }).message}</q></li>`,
          )}</ul></details>`
    }`,
    code: example
      ? codeBox(
          html`<b class="bad">${example.status}</b> <span>${inlineMarkdown(example.when)}</span>`,
          json(example.body),
          { label: code },
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
    code: codeBox(title, code, { label: heading }),
  });

export const toolRows = (): Html[] => [
  row({
    id: 'tools',
    text: html`<h2>Clients and tools</h2><p>They belong to this API, and need no other package at run time.</p>`,
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
