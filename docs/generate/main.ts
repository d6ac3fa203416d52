/** `npm run tool -- docs`: writes the documents that are generated from the code. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { configurationPage, countSettings } from './configuration.ts';
import { decisionsPage } from './decisions.ts';
import { platformPage } from './platform.ts';

startCommand({
  usage: 'Usage: npm run tool -- docs\n\nWrites the documents that are generated from the code.',
  read: readNoOptions,
});
const root = path.join(import.meta.dirname, '../..');

writeFileSync(path.join(root, 'docs/configuration.md'), configurationPage());
writeFileSync(path.join(root, 'docs/adr/README.md'), decisionsPage(path.join(root, 'docs/adr')));
const platform = path.join(root, 'docs/platform.md');
writeFileSync(platform, platformPage(readFileSync(platform, 'utf8')));

const { settings, uses } = countSettings();
console.log(`${settings} settings, ${uses} uses of one by a program`);
