import { describe, expect, it } from 'vitest';
import { listPods, type Manifest, regions, render } from '#test/render-charts.ts';
import { useGoProgram } from './go-program.ts';

const runPodSecurity = useGoProgram('pod-security');
/**
 * Returns the result of Pod Security's "restricted" for each pod, one line each, and their number.
 */
const judge = (pods: { name: string; spec: Manifest }[]): string =>
  runPodSecurity(pods.map(({ name, spec }) => ({ metadata: { name }, spec })));

describe('Pod Security "restricted", by the rules of the API server', () => {
  it.each(regions)('admits every pod of %s', (region) => {
    expect(judge(listPods(render({ region })))).toBe('5 pods, 0 findings\n');
  });

  it('rejects a pod that may become root, so the rules are in effect', () => {
    const values = { podSecurityContext: { runAsNonRoot: false }, containerSecurityContext: { capabilities: null } };
    const result = judge(listPods(render({ values })));
    expect(result).toMatch(/us-org-api-api: runAsNonRoot != true/);
    expect(result).toMatch(/unrestricted capabilities/);
  });
});

describe.each(regions)('pods of %s', (region) => {
  it('can write to /tmp only, and have no token of the cluster', () => {
    const manifests = render({ region });
    for (const { name, spec } of listPods(manifests)) {
      expect(spec, name).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      for (const container of spec.containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
      const account = manifests.find(
        (one) => one.kind === 'ServiceAccount' && one.metadata.name === spec.serviceAccountName,
      );
      expect(account?.automountServiceAccountToken, name).toBe(false);
    }
  });
});
