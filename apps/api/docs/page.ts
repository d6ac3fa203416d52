import { eventTypes } from '#domain/contract/events.ts';
import { endpoints } from '../endpoints.ts';
import { eventOperationId } from '../openapi/webhooks.ts';

/**
 * What `/docs` may load: its own origin, no inline script or style, no frames. `data:` is for the
 * library's small icons.
 */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Returns the reference page. The navigation is written here; start.js renders the rest from the
 * document. `introduction` is its Markdown.
 */
export function referencePage({ title, introduction }: { title: string; introduction: string }): string {
  const chapters = [...introduction.matchAll(/^# (.+)$/gm)].map(([, heading = ''], index) =>
    item(`#chapter-${index + 1}`, heading),
  );
  const reads = endpoints.map(({ operationId, summary }) => blockItem(operationId, summary));
  const events = eventTypes.map((type) => blockItem(eventOperationId(type), `<code>${type}</code>`));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}: reference</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<nav aria-label="Contents">
<strong>${title}</strong>
<ul>${chapters.join('')}</ul>
<h2>Reads</h2>
<ul>${reads.join('')}</ul>
<h2>Events</h2>
<ul>${events.join('')}</ul>
<h2>For tools</h2>
<ul>${item('/v1/openapi.json', 'openapi.json')}${item('/v1/import-1.schema.json', 'import-1.schema.json')}</ul>
</nav>
<main id="reference">
<noscript>
  This page is rendered by a script. Without one, read <a href="/v1/openapi.json">the OpenAPI document</a>.
</noscript>
</main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;
}

function item(href: string, label: string): string {
  return `<li><a href="${href}">${label}</a></li>`;
}

/** Returns a link to the block of an operation or event; start.js opens it. */
function blockItem(operationId: string, label: string): string {
  return `<li><a href="#${operationId}" data-operation="${operationId}">${label}</a></li>`;
}
