import { errorCodes, errorStatus } from '#domain/contract/errors.ts';
import { type Region, regionCodes, regions } from '#domain/contract/regions.ts';
import { attributes, type Child, type Html, html } from '#runtime/pages/html.ts';
import { exampleOrgId } from '../openapi/examples.ts';
import type { Reference } from './document.ts';
import { chapters } from './markdown.ts';
import { environmentSample, languages } from './samples.ts';
import * as sections from './sections.ts';
import { tools } from './tools.ts';

/**
 * What `/docs` may load and do: files of its own origin, no inline script or style, no frames, no
 * form that is sent, and no text that becomes a script or markup.
 */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** What the pages of an installation name. */
export interface Installation {
  region: Region;
  baseUrls: Record<Region, string>;
}

/**
 * Returns the reference as a page that is complete without a script. The script adds search, copying and requests
 * with the reader's key.
 */
export function referencePage(reference: Reference, installation: Installation): string {
  const { title, version } = reference;
  const { region, baseUrls } = installation;
  const otherRegions = regionCodes.filter((code) => code !== region);
  const [opening, ...guide] = chapters(reference.introduction, { errors: 'table' });
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${reference.summary}">
<title>${title}: reference</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml">
<link rel="alternate" href="/docs.md" type="text/markdown">
<link rel="stylesheet" href="/docs/reference.css">
<script src="/docs/reference.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to main content</a>
<header class="top">
<a class="mark" href="/docs"><img src="/docs/icon.svg" alt="" width="24" height="24"><span>${title}</span></a>
<span class="region">${regions[region].name}</span>
${otherRegions.map((code) => html`<a href="${baseUrls[code]}/docs">${regions[code].name}</a>`)}
${search}${keyBox(regions[region].keyPrefix)}
</header>
${languageChoice}
<div class="frame">
${navigation(reference, guide)}
<main id="main" tabindex="-1">
${sections.row({
  id: 'introduction',
  text: html`<h1>${title} <small>${version}</small></h1>${opening?.text}`,
  code: environmentBox(installation),
})}
${guide.map(sections.chapterRow)}
${sections.readsRow(reference)}
${reference.reads.map(sections.readRow)}
${sections.eventsRow(reference)}
${reference.events.map(sections.eventRow)}
${sections.errorsRow(reference)}
${sections.errorRows(reference)}
${sections.toolRows()}
${sections.changesRow()}
</main>
</div>
</body>
</html>
`.toString();
}

const search = html`<search hidden><label class="visually-hidden" for="search">Search the reference</label>
<input type="search" id="search" placeholder="Search" autocomplete="off" aria-keyshortcuts="/"><kbd>/</kbd>
<div id="results" hidden><p role="status"></p><ol></ol></div></search>`;

const keyBox = (prefix: string): Html => html`<details id="key-box" hidden><summary>Your key</summary>
<form><label>API key <input type="password" id="api-key" autocomplete="off" spellcheck="false"
placeholder="${prefix}…"></label>
<label>Organization ID <input id="org-id" autocomplete="off" spellcheck="false" placeholder="${exampleOrgId}"></label>
<p>The key stays in the memory of this page until you reload or leave it, and is sent to this server only. Requests
count against its limit and are in the organization’s audit log.</p><button>Use key</button></form></details>`;

const languageChoice = html`<section class="languages" aria-label="Samples"><fieldset>
<legend class="visually-hidden">Language of the samples</legend>
${languages.map(
  ({ id, name }, index) =>
    html`<label><input type="radio" name="language"${attributes({
      id: `language-${id}`,
      value: id,
      checked: index === 0,
    })}><span>${name}</span></label>`,
)}</fieldset></section>`;

const environmentBox = ({ region, baseUrls }: Installation): Html =>
  sections.codeBox(
    'What the samples use',
    environmentSample(regions[region].keyPrefix, exampleOrgId, baseUrls[region]),
  );

function navigation({ reads, events }: Reference, guide: readonly { id: string; heading: string }[]): Html {
  return html`<nav aria-label="Contents"><details open><summary>Contents</summary>
${group(
  'Guide',
  guide.map(({ id, heading }) => link(`#${id}`, heading)),
)}
${group('Reads', [link('#reads', 'Every read'), ...reads.map(({ id, summary }) => link(`#${id}`, summary))])}
${group('Events', [
  link('#events', 'Every event'),
  ...events.map(({ id, type }) => link(`#${id}`, html`<code>${type}</code>`)),
])}
${group(
  'Error codes',
  errorCodes.map((code) =>
    link(`#${sections.errorId(code)}`, html`<code>${code}</code> <span>${errorStatus[code]}</span>`),
  ),
)}
${group('Clients and tools', [
  ...tools.map(({ id, heading }) => link(`#${id}`, heading)),
  link('#changelog', 'Changelog'),
  link('/v1/openapi.json', 'OpenAPI document'),
  link('/v1/postman-collection.json', 'Postman collection'),
  link('/v1/import-1.schema.json', 'Schema of imports'),
  link('/docs.md', 'This page as Markdown'),
  link('/llms.txt', 'llms.txt'),
])}
</details></nav>`;
}

const group = (title: string, links: readonly Html[]): Html => html`<h2>${title}</h2><ul>${links}</ul>`;
const link = (href: string, label: Child): Html => html`<li><a href="${href}">${label}</a></li>`;
