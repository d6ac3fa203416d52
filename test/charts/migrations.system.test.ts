import { describe, expect, it } from 'vitest';
import { ofKind, pick, regions, render } from '#test/render-charts.ts';

const job = (values: object = {}, args: readonly string[] = []) => pick(render({ values, args }), 'Job');
const getJobName = (values: object = {}) => job(values).metadata.name as string;

describe.each(regions)('the migrations of %s', (region) => {
  const manifest = pick(render({ region }), 'Job');

  it('are a plain Job without hooks, so that Helm, Argo CD and Flux treat it alike', () => {
    expect(manifest.metadata.annotations).toBeUndefined();
    expect(manifest.spec.template.spec.containers[0].command).toEqual(['node', 'apps/migrate/main.ts']);
  });

  it('keep the pod and log of each failed attempt, and do not expire, because a GitOps controller would repeat them', () => {
    expect(manifest.spec.template.spec.restartPolicy).toBe('Never');
    expect(manifest.spec).not.toHaveProperty('ttlSecondsAfterFinished');
  });
});

describe('the name of the migrations’ Job', () => {
  const now = getJobName();

  it('fits into a pod’s label for any release name', () => {
    const { name } = pick(render({ release: 'r'.repeat(53) }), 'Job').metadata;
    expect(name).toMatch(/^r{31}-[0-9a-f]{8}-migrate-[0-9a-f]{10}$/);
    expect(name.length).toBeLessThanOrEqual(63);
  });

  it('is unchanged while the Job is unchanged, so that a finished Job is never updated', () => {
    expect(getJobName()).toBe(now);
    expect(getJobName({ api: { logLevel: 'debug' }, worker: { replicas: 5 } })).toBe(now);
    expect(JSON.stringify(job().metadata.labels)).not.toMatch(/chart|version/);
  });

  it.each([
    ['another image', { image: { digest: `sha256:${'b'.repeat(64)}` } }],
    ['another Secret', { secrets: { ownerDatabaseUrl: { existingSecret: 'other' } } }],
    ['rotated Secrets', { secrets: { revision: '2' } }],
    ['the wish to run again', { migrations: { rerun: 'now' } }],
    ['another number of tries', { migrations: { backoffLimit: 3 } }],
    ['another environment', { migrations: { extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca' }] } }],
    ['other labels', { commonLabels: { team: 'x' } }],
  ])('changes with %s', (_, values) => {
    expect(getJobName(values)).not.toBe(now);
  });
});

it('a release without the migrations’ Job has no object of it', () => {
  const manifests = render({ values: { migrations: { enabled: false } } });
  expect(ofKind(manifests, 'Job')).toEqual([]);
  expect(manifests.filter((one) => /migrat/.test(one.metadata.name))).toEqual([]);
});
