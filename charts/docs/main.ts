import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { documentsOf } from './documents.ts';
import { ValuesRefused } from './read-values.ts';

/**
 * `npm run chart:docs`: writes the chart's values.schema.json and the tables of its README
 * from the comments of values.yaml.
 */
const chart = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../org-api');
try {
  const documents = documentsOf((name) => readFileSync(path.join(chart, name), 'utf8'));
  for (const [name, text] of Object.entries(documents)) writeFileSync(path.join(chart, name), text);
  process.stdout.write(`Written: ${Object.keys(documents).join(' and ')}.\n`);
} catch (error) {
  if (!(error instanceof ValuesRefused)) throw error;
  process.stderr.write(`Nothing was written. Fix values.yaml:\n${error.message}\n`);
  process.exitCode = 1;
}
