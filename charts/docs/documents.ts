import { readValues } from './read-values.ts';
import { listOf, replaceList, schemaOf } from './write.ts';

/**
 * Returns the documents that are generated from values.yaml: the file's name in the chart's folder
 * and its text. `read` returns a file of that folder.
 *
 * @throws ValuesRefused
 */
export function documentsOf(read: (name: string) => string): Record<string, string> {
  const values = readValues(read('values.yaml'));
  return {
    'values.schema.json': `${JSON.stringify(schemaOf(values), null, 2)}\n`,
    'README.md': replaceList(read('README.md'), listOf(values)),
  };
}
