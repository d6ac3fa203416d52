import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Manifest, podsOf, regions, render } from './render.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'org-api-pod-security-'));
const program = path.join(folder, 'pod-security');
/** With an empty cache of Go, three minutes on a busy machine of two cores; 3 s afterwards. */
const buildMs = 600_000;

beforeAll(() => {
  const { status, stderr, error } = spawnSync('go', ['build', '-buildvcs=false', '-o', program, '.'], {
    cwd: fileURLToPath(new URL('./pod-security', import.meta.url)),
    env: { ...process.env, CGO_ENABLED: '0' },
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`Pod Security's rules could not be built: install Go 1.26 or newer. ${error?.message ?? stderr}`);
}, buildMs);
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Returns the result of Pod Security's "restricted" for each pod, one line each, and their number.
 */
function judge(pods: { name: string; spec: Manifest }[]): string {
  const input = pods.map(({ name, spec }) => JSON.stringify({ metadata: { name }, spec })).join('\n');
  return spawnSync(program, { input, encoding: 'utf8' }).stdout;
}

describe('Pod Security "restricted", by the rules of the API server', () => {
  it.each(regions)('admits every pod of %s', (region) => {
    expect(judge(podsOf(render({ region })))).toBe('5 pods, 0 findings\n');
  });

  it('refuses a pod that may become root, so the rules are in effect', () => {
    const values = { podSecurityContext: { runAsNonRoot: false }, containerSecurityContext: { capabilities: null } };
    const result = judge(podsOf(render({ values })));
    expect(result).toMatch(/us-org-api-api: runAsNonRoot != true/);
    expect(result).toMatch(/unrestricted capabilities/);
  });
});

describe.each(regions)('pods of %s', (region) => {
  it('can write to /tmp only, and have no token of the cluster', () => {
    const manifests = render({ region });
    for (const { name, spec } of podsOf(manifests)) {
      expect(spec, name).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      for (const container of spec.containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
      const account = manifests.find(
        (one) => one.kind === 'ServiceAccount' && one.metadata.name === spec.serviceAccountName,
      );
      expect(account?.automountServiceAccountToken, name).toBe(false);
    }
  });
});
