import { readValues } from './read-values.ts';
import { replaceTables, schemaOf, tablesOf } from './write.ts';

/**
 * What is made from values.yaml: name of the file in the chart's folder → its text. `read` gives a
 * file of that folder. @throws ValuesRefused
 */
export function documentsOf(read: (name: string) => string): Record<string, string> {
  const values = readValues(read('values.yaml'));
  return {
    'values.schema.json': `${JSON.stringify(schemaOf(values), null, 2)}\n`,
    'README.md': replaceTables(read('README.md'), tablesOf(values)),
  };
}
