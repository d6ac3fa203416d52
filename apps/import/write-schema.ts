/**
 * `npm run tool -- import-schema`: writes import-1.schema.json, the committed JSON Schema of the import
 * format, from the format. A test fails while the two differ.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { importSchemaText } from './document/json-schema.ts';

startCommand({
  usage: 'Usage: npm run tool -- import-schema\n\nWrites apps/import/import-1.schema.json.',
  read: readNoOptions,
});
writeFileSync(fileURLToPath(new URL('import-1.schema.json', import.meta.url)), importSchemaText());
console.log('apps/import/import-1.schema.json is written. Commit it with the change that made it.');
