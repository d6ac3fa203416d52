/**
 * `npm run tool -- openapi`: writes openapi.json, the committed document, from the declarations. A test
 * fails while the two differ.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { defaultBaseUrls } from '../config.ts';
import { openApiText } from './document.ts';

startCommand({ usage: 'Usage: npm run tool -- openapi\n\nWrites apps/api/openapi/openapi.json.', read: readNoOptions });
const file = fileURLToPath(new URL('openapi.json', import.meta.url));
writeFileSync(file, openApiText(defaultBaseUrls));
console.log('apps/api/openapi/openapi.json is written. Commit it with the change that made it.');
