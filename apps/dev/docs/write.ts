/** `npm run docs`: writes the documents that are generated from the code. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurationPage } from './configuration.ts';

writeFileSync(fileURLToPath(new URL('../../../docs/configuration.md', import.meta.url)), configurationPage());
