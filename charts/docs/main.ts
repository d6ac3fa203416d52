import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { generateTypes, readDefinition, referencePage } from './custom-resources.ts';
import { generateDocuments } from './documents.ts';
import { InvalidValuesError } from './read-values.ts';

/**
 * `npm run tool -- charts`: writes values.schema.json and the tables of the README of each chart with
 * values from the comments of values.yaml, and the operator's types and the reference page from the
 * schemas of its custom resources.
 */
startCommand({
  usage: 'Usage: npm run tool -- charts\n\nWrites the schemas and documents of the charts.',
  read: readNoOptions,
});
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const inRoot = (name: string) => path.join(root, name);
try {
  const written: Record<string, string> = {};
  for (const chart of ['charts/org-api', 'charts/org-api-operator']) {
    const documents = generateDocuments((name) => readFileSync(inRoot(`${chart}/${name}`), 'utf8'));
    for (const [name, text] of Object.entries(documents)) written[`${chart}/${name}`] = text;
  }
  const folder = 'charts/org-api-crds/templates';
  const definitions = readdirSync(inRoot(folder))
    .sort()
    .map((name) => readDefinition(readFileSync(inRoot(`${folder}/${name}`), 'utf8')));
  written['apps/operator/kube/resources.ts'] = generateTypes(definitions);
  written['docs/custom-resources.md'] = referencePage(definitions);
  for (const [name, text] of Object.entries(written)) writeFileSync(inRoot(name), text);
  process.stdout.write(`Written: ${Object.keys(written).join(', ')}.\n`);
} catch (error) {
  if (!(error instanceof InvalidValuesError)) throw error;
  process.stderr.write(`Nothing was written. Fix values.yaml:\n${error.message}\n`);
  process.exitCode = 1;
}
