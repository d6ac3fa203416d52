import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * The identity of a build: Temporal distinguishes versions of workers by it, and a registry images.
 */
export interface Build {
  /** `<version>-<commit>`, and with uncommitted changes a hash of them. Valid as a tag and a label. */
  buildId: string;
  /** The commit, 40 hex digits. */
  revision: string;
  /** URL of the repository without credentials; null when git has none. */
  source: string | null;
}

type Git = (...args: string[]) => string;

/** What an image is built from; other changes do not change the build id. */
const inputs = ['apps', 'workflows', 'charts/image', 'package.json', 'package-lock.json', '.npmrc', 'LICENSE'];

/** Reads the checkout from git. @throws Error when there is none. */
export function describeBuild(repository: string): Build {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, encoding: 'utf8', stdio: 'pipe' });
  const { version } = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8')) as { version: string };
  const revision = git('rev-parse', 'HEAD').trim();
  return {
    buildId: [version, revision.slice(0, 12), hashChanges(repository, git)].filter(Boolean).join('-'),
    revision,
    source: findSource(git),
  };
}

/**
 * Returns eight hex digits of the differences from the commit, so that two images of one checkout
 * have two ids; null without differences.
 */
function hashChanges(repository: string, git: Git): string | null {
  const names = git('ls-files', '--modified', '--deleted', '--others', '--exclude-standard', '-z', '--', ...inputs);
  const staged = git('diff', '--cached', '--name-only', '-z', '--', ...inputs);
  const files = [...new Set(`${names}${staged}`.split('\0').filter(Boolean))].sort();
  if (files.length === 0) return null;
  const hash = createHash('sha256');
  for (const file of files) hash.update(`\0${file}\0`).update(readOrEmpty(path.join(repository, file)));
  return hash.digest('hex').slice(0, 8);
}

function readOrEmpty(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}

function findSource(git: Git): string | null {
  try {
    return git('remote', 'get-url', 'origin')
      .trim()
      .replace(/^(\w+:\/\/)[^@/]*@/, '$1');
  } catch {
    return null;
  }
}
