/**
 * `npm run tool -- clients`: writes the generated files of the clients from the committed OpenAPI
 * document. `npm test` compares the digests in them, and `npm run test:system` their text.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { typescriptFile } from './digests.ts';
import { readModel } from './document.ts';
import { generatePython } from './python.ts';
import { generateTypeScript } from './typescript.ts';

const usage = `Usage: npm run tool -- clients [--check]

Writes the generated files of the clients in apps/clients. The generators are installed into the user's cache.

  --check   writes nothing, and fails when a file differs
`;

const { check = false } = startCommand({
  usage,
  read: () => parseArgs({ options: { check: { type: 'boolean' } } }).values,
});
const model = readModel();
const texts: Record<string, string> = {
  [typescriptFile]: await generateTypeScript(model),
  ...(await generatePython(model)),
};
for (const [name, text] of Object.entries(texts)) {
  const file = path.join(import.meta.dirname, '..', name);
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`apps/clients/${name} differs: run npm run tool -- clients`);
    process.exitCode = 1;
  }
}
if (!check) console.log(`Written in apps/clients: ${Object.keys(texts).join(', ')}.`);
