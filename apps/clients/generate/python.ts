/** Writes the generated files of the Python client. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pythonEnvironment } from '../../../test/support/python-environment.ts';
import { runTool } from '../../../test/support/tools.ts';
import { getPythonInputs, listHeaderLines, pythonFiles } from './digests.ts';
import type { ApiModel, Read } from './document.ts';

const remedy = 'install Python 3.11 or newer with its venv module, and check the network and the Python package index';

/** Returns the texts by file: types by datamodel-code-generator, and the reads as methods. */
export async function generatePython(model: ApiModel): Promise<Record<string, string>> {
  const inputs = getPythonInputs(model);
  const header = listHeaderLines(model, inputs)
    .map((line) => `# ${line}\n`)
    .join('');
  const [reads, models] = pythonFiles;
  return { [models]: header + (await generateTypes(model)), [reads]: header + writeReads(model, inputs.version) };
}

function writeReads({ reads, servers }: ApiModel, version: string): string {
  const quote = (value: unknown) => JSON.stringify(value);
  const names = [...new Set(reads.map(({ response }) => response))].sort();
  const pairs = Object.entries(servers).map(([region, url]) => `    ${quote(region)}: ${quote(url)},\n`);
  const listMethods = (isAsync: boolean) => reads.map((read) => writeMethod(read, isAsync)).join('');
  const read = 'def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:';
  return `from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, overload

if TYPE_CHECKING:
    from ._core import ApiResponse
    from .models import (
${names.map((name) => `        ${name},\n`).join('')}    )

VERSION = ${quote(version)}
SERVERS = {
${pairs.join('')}}


class Reads:
    ${read}
        raise NotImplementedError
${listMethods(false)}

class AsyncReads:
    async ${read}
        raise NotImplementedError
${listMethods(true)}`;
}

function writeMethod({ operationId, path, response, summary, description }: Read, isAsync: boolean): string {
  const name = operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const start = `${isAsync ? 'async ' : ''}def ${name}(self, organization_id: str`;
  const lines = [
    '@overload',
    `${start}) -> ApiResponse[${response}]: ...`,
    '@overload',
    `${start}, *, if_none_match: str) -> ApiResponse[Optional[${response}]]: ...`,
    `${start}, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:`,
    `    """${summary}.`,
    '',
    ...description.split('\n').map((line) => `    ${line}`),
    '    """',
    `    return ${isAsync ? 'await ' : ''}self._read(${JSON.stringify(path)}, organization_id, if_none_match)`,
  ];
  return `\n${lines.map((line) => `    ${line}`.trimEnd()).join('\n')}\n`;
}

/** Returns typed dictionaries, which need no conversion of a large body. */
async function generateTypes({ openapi, info, schemas }: ApiModel): Promise<string> {
  const home = await provideGenerator();
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-models-'));
  try {
    const [input, output] = ['opened.json', 'models.py'].map((name) => path.join(folder, name)) as [string, string];
    writeFileSync(input, JSON.stringify({ openapi, info, paths: {}, components: { schemas: openEnums(schemas) } }));
    const files = ['--input', input, '--input-file-type', 'openapi', '--output', output];
    // The oldest target: the imports below are what runs in 3.9.
    const target = ['--target-python-version', '3.10', '--output-model-type', 'typing.TypedDict'];
    const style = ['--formatters', 'black', 'isort', '--custom-file-header', '#', '--disable-timestamp'];
    const types = ['--use-union-operator', '--enum-field-as-literal', 'all', '--use-title-as-name'];
    const texts = ['--use-field-description', '--use-schema-description'];
    await runTool([path.join(home, 'bin', 'datamodel-codegen'), ...files, ...target, ...style, ...types, ...texts], {
      what: 'datamodel-code-generator failed',
      remedy: 'see its output',
    });
    return readFileSync(output, 'utf8')
      .replace(/^#\n+/, '')
      .replace(
        'from typing import Literal, TypeAlias, TypedDict\n\nfrom typing_extensions import NotRequired\n',
        'from typing import TYPE_CHECKING, Literal, TypedDict\n\n' +
          'if TYPE_CHECKING:\n    from typing_extensions import NotRequired, TypeAlias\n',
      );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns schemas whose enums accept every text beside the known values, as a later server sends. */
function openEnums(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(openEnums);
  if (node === null || typeof node !== 'object') return node;
  const { enum: values, pattern, ...rest } = node as Record<string, unknown>;
  if (rest.type !== 'string' || values === undefined)
    return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, openEnums(value)]));
  const { type, ...kept } = rest;
  return { ...kept, anyOf: [{ type, enum: values }, { type }] };
}

/** Returns the folder of the generator, which is installed once into the user's cache. */
function provideGenerator(): Promise<string> {
  const requirements = path.join(import.meta.dirname, 'packages/requirements.txt');
  return pythonEnvironment({
    name: 'generate-clients-python',
    version: readFileSync(requirements, 'utf8'),
    install: ['--requirement', requirements],
    program: 'datamodel-codegen',
    remedy,
  });
}
