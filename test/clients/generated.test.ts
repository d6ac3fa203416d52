/** The generated files are those of the committed OpenAPI document, by the digests that they carry. */
import { expect, it } from 'vitest';
import {
  getPythonInputs,
  getTypeScriptInputs,
  listHeaderLines,
  pythonFiles,
  readVersion,
  typescriptFile,
} from '../../apps/clients/generate/digests.ts';
import { readModel, readText } from '../../apps/clients/generate/document.ts';

const model = readModel();

const files = [
  [typescriptFile, getTypeScriptInputs(model)] as const,
  ...pythonFiles.map((name) => [name, getPythonInputs(model)] as const),
];

it.each(files)('%s: run npm run tool -- clients', (name, inputs) => {
  const header = readText(name)
    .split('\n', 3)
    .map((line) => line.replace(/^(\/\/|#) /, ''));
  expect(header).toEqual(listHeaderLines(model, inputs));
});

it('every enum of the document is open in both languages, for values that the server learns later', () => {
  const enums = JSON.stringify(model.schemas).split('"enum":').length - 1;
  expect(enums).toBeGreaterThan(5);
  const [typescript = '', python = ''] = [typescriptFile, pythonFiles[1]].map(readText);
  expect(typescript.split('(string & {})')).toHaveLength(enums + 1);
  expect(python.match(/Literal\[[^\]]+\]\s*\| str\b/g)).toHaveLength(enums);
});

it('a digest changes with a schema, a read and the generator, and a version must be that of the document', () => {
  const inputs = getTypeScriptInputs(model);
  const { openapi, schemas, reads } = model;
  const lines = [
    listHeaderLines(model, inputs),
    listHeaderLines({ ...model, schemas: { ...schemas, Roster: { type: 'object' } } }, inputs),
    listHeaderLines({ ...model, reads: reads.slice(1) }, inputs),
    listHeaderLines(model, { ...inputs, files: inputs.files.slice(1) }),
    listHeaderLines(model, { ...inputs, version: '1.0.1' }),
  ];
  expect(new Set(lines.map((one) => one.join())).size).toBe(lines.length);
  const later = { ...model, openapi, info: { ...model.info, version: '1.1.0' } };
  expect(() => readVersion('typescript/package.json', /"version": "(.+)"/, later)).toThrow(
    /typescript\/package.json has version 1\.0\.\d+, and the OpenAPI document 1\.1\.0/,
  );
});
