/** `npm run docs`: writes the documents that are generated from the code. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { configurationPage } from './configuration.ts';
import { decisionsPage } from './decisions.ts';

const root = path.join(import.meta.dirname, '../../..');

writeFileSync(path.join(root, 'docs/configuration.md'), configurationPage());
writeFileSync(path.join(root, 'docs/adr/README.md'), decisionsPage(path.join(root, 'docs/adr')));
