import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { getCACertificates } from 'node:tls';
import type { Report } from '../../apps/dev/servers/process.ts';
import { makeBases } from './bases.ts';
import type { Build } from './build-id.ts';
import { buildFrom, run } from './buildah.ts';

const file = path.join(import.meta.dirname, 'Dockerfile');

interface ImageOptions {
  repository: string;
  build: Build;
  /** `NAME:TAG` in the archive. */
  tag: string;
  /** Where to write it (docker-archive). */
  archive: string;
  /** Whether to pull the Dockerfile's bases, instead of making them here. */
  pull: boolean;
  /** Whether to use no layer of an earlier build. */
  withoutCache?: boolean;
  report: Report;
}

/**
 * Builds the image of this machine's architecture by the Dockerfile with buildah, and writes it as an archive.
 * Returns its id and the bytes of the archive.
 *
 * @throws Error with the last complaint of the build.
 */
export async function buildImage(options: ImageOptions): Promise<{ imageId: string; bytes: number }> {
  const { repository, build, tag, archive, pull, withoutCache = false, report } = options;
  const bases = pull ? {} : await makeBases(report);
  const { buildId, revision, source } = build;
  const labels = { version: buildId, revision, source: source ?? '' };
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-image-'));
  try {
    report('building it');
    const imageId = buildFrom(file, {
      context: repository,
      options: [
        pull ? '--pull' : '--pull-never',
        `--no-cache=${withoutCache}`,
        `--ignorefile=${file}.dockerignore`,
        ...Object.entries(bases).map(([name, value]) => `--build-arg=${name}=${value}`),
        ...Object.entries(labels).map(([name, value]) => `--label=org.opencontainers.image.${name}=${value}`),
        ...shareNpm(work).map(([from, to]) => `--volume=${from}:${to}`),
      ],
    });
    mkdirSync(path.dirname(archive), { recursive: true });
    rmSync(archive, { force: true });
    run('buildah', ['push', '--quiet', imageId, `docker-archive:${archive}:${tag}`]);
    return { imageId, bytes: statSync(archive).size };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Returns what the build's npm uses of this machine's: its downloads, and how it reaches its registry. */
function shareNpm(work: string): [from: string, to: string][] {
  const get = (...names: string[]) => run('npm', ['config', 'get', ...names]).trim();
  const own = path.join(homedir(), '.npmrc');
  const [authorities, settings, cache] = [path.join(work, 'authorities'), path.join(work, 'npmrc'), get('cache')];
  const read = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  writeFileSync(authorities, [...getCACertificates('default'), read(get('cafile'))].join('\n'));
  const set = get('registry', 'proxy', 'https-proxy', 'noproxy').split('\n');
  const lines = [read(own), ...set.filter((line) => !/=(null)?$/.test(line)), 'cafile=/root/authorities', ''];
  writeFileSync(settings, lines.join('\n'), { mode: 0o600 });
  mkdirSync(cache, { recursive: true });
  return [
    [cache, '/root/.npm'],
    [settings, '/root/.npmrc:ro'],
    [authorities, '/root/authorities:ro'],
  ];
}
