/** The workflows of the repository's host: what they run, and what they may do. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { getTool } from '../../charts/tools.ts';

const root = path.join(import.meta.dirname, '../..');
const folder = path.join(root, '.github/workflows');
const files = readdirSync(folder);
const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');

interface Workflow {
  permissions: unknown;
  jobs: Record<string, Job>;
}
interface Job {
  if?: string;
  strategy?: { matrix: { stage?: string[]; include?: object[] } };
  container?: { image: string };
  permissions?: Record<string, string>;
  uses?: string;
  needs?: string | string[];
  steps?: { uses?: string; run?: string; with?: Record<string, string> }[];
}
const workflow = (name: string): Workflow => parse(read(name));

it('are accepted by actionlint', async () => {
  const { status, stdout } = spawnSync(await getTool('actionlint'), [], { cwd: root, encoding: 'utf8' });
  expect(stdout).toBe('');
  expect(status).toBe(0);
});

it('a tag of a version or of a candidate for it starts the release', () => {
  const { on } = parse(read('release.yml')) as { on: { push: { tags: string[] } } };
  expect(on.push.tags).toEqual(['v[0-9]+.[0-9]+.[0-9]+', 'v[0-9]+.[0-9]+.[0-9]+-rc.[0-9]+']);
});

it('Dependabot proposes newer actions, packages and base images', () => {
  const { updates } = parse(readFileSync(path.join(root, '.github/dependabot.yml'), 'utf8')) as {
    updates: { 'package-ecosystem': string }[];
  };
  expect(updates.map((one) => one['package-ecosystem'])).toEqual(['npm', 'docker', 'github-actions']);
});

it.each(files)('%s uses actions only by the digest of a commit, with the version beside it', (name) => {
  const uses = read(name).match(/uses: .*/g) ?? [];
  expect(uses.length).toBeGreaterThan(1);
  for (const one of uses)
    expect(one).toMatch(/^uses: (?:[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\.\/\.github\/workflows\/ci\.yml)$/);
});

it.each(files)('%s may only read; a job that may write checks out and installs nothing', (name) => {
  const { permissions, jobs } = workflow(name);
  expect(permissions).toEqual({ contents: 'read' });
  for (const job of Object.values(jobs).filter((one) => one.permissions !== undefined))
    expect(job.steps?.filter(({ uses = '', run = '' }) => /checkout/.test(uses) || /\bnpm\b/.test(run))).toEqual([]);
});

it.each(files)('%s runs in the image in which the release is built', (name) => {
  const dockerfile = readFileSync(path.join(root, 'charts/image/Dockerfile'), 'utf8');
  const [, image] = /ARG BUILD_IMAGE=(\S+)/.exec(dockerfile) ?? [];
  const images = Object.values(workflow(name).jobs).flatMap(({ container }) => container?.image ?? []);
  expect([...new Set(images)]).toEqual([image]);
});

it('release.yml publishes what the dry run makes: image and charts signed, with SBOM, provenance and checksums', () => {
  const { checks, image, clients, build, publish } = workflow('release.yml').jobs;
  // The tagged commit passes every stage of CI, and the audit of the lock file, before anything is built.
  expect([checks?.uses, image?.needs]).toEqual(['./.github/workflows/ci.yml', 'checks']);
  expect([clients?.needs, build?.needs, publish?.needs]).toEqual(['checks', ['image', 'clients'], 'build']);
  expect(read('ci.yml')).toMatch(/^ {2}workflow_call:/m);
  expect(read('ci.yml')).toContain('npm audit --audit-level=high');
  const joinRuns = (job?: Job) => job?.steps?.map(({ run = '' }) => run).join('\n') ?? '';
  // The long tests whose files have this word in their path: clients of generators compile.
  expect(joinRuns(clients)).toContain('npm run tool -- long generators');
  expect(existsSync(path.join(root, 'test/api/openapi/generators.long.test.ts'))).toBe(true);
  // Each architecture's image is built, and loads Temporal's native module, on a machine of it.
  expect(image?.strategy?.matrix.include).toEqual([
    { architecture: 'amd64', runner: 'ubuntu-24.04' },
    { architecture: 'arm64', runner: 'ubuntu-24.04-arm' },
  ]);
  expect(joinRuns(image)).toMatch(/image --pull --archive "\$ARCHIVE"[\s\S]*buildah run .*core-bridge/);
  expect(joinRuns(build)).toContain('npm run tool -- release --tag "$GITHUB_REF_NAME"');
  expect(joinRuns(build)).toContain('--image .org-api/image/amd64.tar --image .org-api/image/arm64.tar');
  const steps = joinRuns(publish);
  expect(steps).toContain('sha256sum --check --strict SHA256SUMS');
  expect(steps).toMatch(/skopeo copy --all [\s\S]*cosign sign --yes "\$registry\/org-api@\$\(cat digest\)"/);
  expect(steps).toMatch(/for chart in dist\/org-api\{,-crds,-operator\}-"\$\{TAG#v\}"\.tgz; do\s+helm push /);
  expect(steps).toMatch(/helm push [\s\S]*cosign sign --yes "\$registry\/charts\/[\s\S]*done/);
  expect(steps).toMatch(
    /cosign attest --yes --type cyclonedx --predicate dist\/org-api\.cdx\.json "\$registry\/org-api@/,
  );
  expect(steps).toMatch(/gh release create "\$TAG" dist\/\* .*--notes-file dist\/NOTES\.md \$kind/);
  const provenance = publish?.steps?.filter(({ uses }) => uses?.startsWith('actions/attest-build-provenance@'));
  expect(provenance?.map((step) => Object.keys(step.with ?? {})[0])).toEqual(['subject-name', 'subject-checksums']);
});

it('ci.yml runs every stage of .ci/run, each as a job', () => {
  const script = readFileSync(path.join(root, '.ci/run'), 'utf8');
  const [, all = ''] = /^wanted=" \$\{\*:-([a-z ]+)\} "$/m.exec(script) ?? [];
  const stages = all.split(' ');
  expect(workflow('ci.yml').jobs.stage?.strategy?.matrix.stage).toEqual(stages);
  const run = new Set([...script.matchAll(/^if runs (\w+); then/gm)].map(([, name]) => name));
  expect(run).toEqual(new Set(stages));
  const unknown = spawnSync('bash', ['.ci/run', 'other'], { cwd: root, encoding: 'utf8' });
  expect([unknown.status, unknown.stdout]).toEqual([2, 'unknown stage: other\n']);
  execFileSync('bash', ['-n', '.ci/run'], { cwd: root });
});

it('ci.yml rejects a pull request with a subject of more than 72 columns, and one with 72 passes', () => {
  const { if: when, steps = [] } = workflow('ci.yml').jobs.subjects ?? {};
  expect(when).toBe("github.event_name == 'pull_request'");
  const cwd = temporaryFolder();
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { cwd, encoding: 'utf8' });
  const commit = (subject: string) => git('commit', '--quiet', '--allow-empty', '--message', subject);
  git('init', '--quiet');
  commit(`a base with ${'x'.repeat(100)}`);
  const BASE = git('rev-parse', 'HEAD').trim();
  // As GitHub runs a step.
  const judge = () =>
    spawnSync('bash', ['-eo', 'pipefail', '-c', steps.at(-1)?.run ?? ''], {
      cwd,
      env: { ...process.env, BASE },
      encoding: 'utf8',
    });
  commit('x'.repeat(72));
  expect(judge()).toMatchObject({ status: 0, stdout: '' });
  commit('y'.repeat(73));
  commit('short');
  expect(judge()).toMatchObject({ status: 1, stdout: `${'y'.repeat(73)}\n` });
});
