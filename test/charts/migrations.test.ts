import { describe, expect, it } from 'vitest';
import { ofKind, pick, regions, render } from './render.ts';

const job = (values: object = {}, args: readonly string[] = []) => pick(render({ values, args }), 'Job');
const nameOf = (values: object = {}) => job(values).metadata.name as string;

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

describe.each(regions)('the contract migrations of %s', (region) => {
  const manifests = render({ region });
  const cronJob = pick(manifests, 'CronJob');
  const { template } = cronJob.spec.jobTemplate.spec;

  it('run only when a Job is created from the CronJob', () => {
    expect(cronJob.spec).toMatchObject({ suspend: true, schedule: '0 0 31 2 *' });
    expect(template.spec.containers[0].args).toEqual(['--contract']);
  });

  it('run as the other migrations do', () => {
    const { args: _, ...container } = template.spec.containers[0];
    const expected = pick(manifests, 'Job').spec.template;

    expect({ ...template, spec: { ...template.spec, containers: [container] } }).toEqual(expected);
  });

  it('leave the health of an Argo CD application alone while they are suspended', () => {
    expect(cronJob.metadata.annotations).toEqual({ 'argocd.argoproj.io/ignore-healthcheck': 'true' });
  });
});

describe('the name of the migrations’ Job', () => {
  const now = nameOf();

  it('fits into a pod’s label for any release name', () => {
    const { name } = pick(render({ release: 'r'.repeat(53) }), 'Job').metadata;
    expect(name).toMatch(/^r{40}-migrate-[0-9a-f]{10}$/);
    expect(name.length).toBeLessThanOrEqual(63);
  });

  it('is unchanged while the Job is unchanged, so that a finished Job is never updated', () => {
    expect(nameOf()).toBe(now);
    expect(nameOf({ api: { logLevel: 'debug' }, worker: { replicas: 5 } })).toBe(now);
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
    expect(nameOf(values)).not.toBe(now);
  });
});

it('a release without the migrations’ Job has no object of it', () => {
  const manifests = render({ values: { migrations: { enabled: false } } });
  expect(ofKind(manifests, 'Job')).toEqual([]);
  expect(ofKind(manifests, 'CronJob')).toEqual([]);
  expect(manifests.filter((one) => /migrat/.test(one.metadata.name))).toEqual([]);
});
