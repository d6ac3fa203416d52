import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { chart, regions, renderText } from '#test/render-charts.ts';
import { findTool, getTool } from '../../charts/tools.ts';
import { renderOperator } from './promtool.ts';
import { getOwnSchemas, getSchemas } from './schemas.ts';

const buildMs = 600_000;
/** Objects whose kinds exist only where their operator is installed. */
const args = ['--api-versions', 'monitoring.coreos.com/v1', '--api-versions', 'gateway.networking.k8s.io/v1'];

function run(program: string, options: readonly string[], input?: string): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(program, options, {
    input,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, output: `${stdout}${stderr}` };
}

describe.each(regions)('the chart with %s-values.yaml', (region) => {
  it('passes helm lint --strict', async () => {
    const values = path.join(chart, 'ci', `${region}-values.yaml`);
    expect(run(await getTool('helm'), ['lint', '--strict', chart, '--values', values])).toMatchObject({ status: 0 });
  });

  it('passes all checks of kube-score', { timeout: buildMs }, async () => {
    // CPU limits: values.yaml says why there are none. The pull policy Always would keep pods from
    // starting while a registry is unavailable. Pods are spread by topologySpreadConstraints.
    const ignored = ['container-image-pull-policy', 'deployment-has-host-podantiaffinity'];
    const ignore = ['--ignore-container-cpu-limit', ...ignored.flatMap((test) => ['--ignore-test', test])];
    const options = ['score', '--output-format', 'ci', ...ignore, '-'];
    const { status, output } = run(await getTool('kube-score'), options, renderText({ region }));
    expect(output.split('\n').filter((line) => /^\[(CRITICAL|WARNING)\]/.test(line))).toEqual([]);
    expect(status).toBe(0);
  });

  it('passes kube-linter', { timeout: buildMs }, async (context) => {
    const linter = await findTool('kube-linter');
    context.skip(
      linter === null,
      'kube-linter is neither on PATH nor to be had from the Go module proxy: install it to run this',
    );
    const { status, output } = run(
      linter ?? '',
      ['lint', '--config', path.join(chart, '.kube-linter.yaml'), '-'],
      renderText({ region }),
    );
    expect({ status, output }).toMatchObject({ status: 0 });
  });
});

describe('kubeconform, strict', { timeout: buildMs }, () => {
  let options: string[] = [];
  let program = '';
  beforeAll(async () => {
    program = await getTool('kubeconform');
    const formatLocation = (folder: string) => `${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`;
    const folders = [await getSchemas(), await getOwnSchemas()];
    options = ['-strict', '-summary', ...folders.flatMap((folder) => ['-schema-location', formatLocation(folder)])];
  }, buildMs);

  it.each(regions)('accepts every object of %s', (region) => {
    const { status, output } = run(program, options, renderText({ region, args }));
    expect(output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    expect(status).toBe(0);
  });

  it('accepts every object of the operator', () => {
    const objects = renderOperator();
    const { status, output } = run(program, options, objects.map((one) => JSON.stringify(one)).join('\n---\n'));
    expect(output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    expect(status).toBe(0);
  });

  it('accepts every object with all options in use', () => {
    const all = fileURLToPath(new URL('./all-options.yaml', import.meta.url));
    const { status, output } = run(program, options, renderText({ args: [...args, '--values', all] }));
    expect(output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    expect(status).toBe(0);
  });

  it.each([
    ['a misspelt field', 'terminationGracePeriodSeconds', 'terminationGraceSeconds'],
    ['a field of the wrong type', 'revisionHistoryLimit: 5', 'revisionHistoryLimit: five'],
    ['a misspelt field of a CRD', 'parentRefs:', 'parents:'],
  ])('rejects %s, so the schemas are in effect', (_, from, to) => {
    const text = renderText();
    expect(text).toContain(from);
    expect(run(program, options, text.replace(from, to)).status).toBe(1);
  });
});
