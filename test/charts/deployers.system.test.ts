/** The guide's examples for Argo CD and Flux, checked with the definitions of their kinds. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { listBlocks, readPage } from '#test/documents.ts';
import { getTool } from '../../charts/tools.ts';
import { getDeployerSchemas, getSchemas } from './schemas.ts';

const buildMs = 900_000;
const page = readPage(path.join(import.meta.dirname, '../../docs/operations/deploy-with-argo-cd-or-flux.md'));
const examples = listBlocks(page, 'yaml').join('\n---\n');

describe('the examples for Argo CD and Flux', { timeout: buildMs }, () => {
  let validate: (text: string) => { status: number | null; output: string };
  beforeAll(async () => {
    const program = await getTool('kubeconform');
    const folders = [await getSchemas(), await getDeployerSchemas()];
    const locations = folders.flatMap((folder) => [
      '-schema-location',
      `${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`,
    ]);
    validate = (input) => {
      const options = ['-strict', '-summary', ...locations];
      const { status, stdout, stderr } = spawnSync(program, options, { input, encoding: 'utf8' });
      return { status, output: `${stdout}${stderr}` };
    };
  }, buildMs);

  it('are accepted by the definitions of their kinds', () => {
    const { status, output } = validate(examples);

    expect(output).toMatch(/4 resources found .* Valid: 4, Invalid: 0, Errors: 0, Skipped: 0/);
    expect(status).toBe(0);
  });

  it.each([
    ['a field of an Application', 'selfHeal:', 'selfHeals:'],
    ['a field of a GitRepository', 'branch:', 'branches:'],
    ['a field of a HelmRelease', 'remediateLastFailure:', 'remediateLast:'],
    ['a value of a HelmRelease', 'strategy: rollback', 'strategy: undo'],
  ])('are rejected with another name of %s', (_, from, to) => {
    expect(examples).toContain(from);
    expect(validate(examples.replace(from, to)).status).toBe(1);
  });
});
