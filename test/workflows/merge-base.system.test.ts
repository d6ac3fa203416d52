/**
 * Histories are replayed across the merge base: a rollout replays old histories with new code, a
 * rollback the reverse.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import '#test/worker.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const timeout = 180_000;
function git(...args: string[]): string | null {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

/** The commit that this checkout is compared with, or the reason for there being none. */
function findBase(): { commit: string } | { why: string } {
  const head = git('rev-parse', 'HEAD');
  if (head === null) return { why: 'this is no clone of a repository' };
  for (const branch of ['origin/main', 'main']) {
    const base = git('merge-base', 'HEAD', branch);
    if (base !== null && base !== head) return { commit: base };
  }
  const parent = git('rev-parse', '--verify', 'HEAD~1');
  return parent === null ? { why: 'the clone is shallow: it has no commit before this one' } : { commit: parent };
}

const base = findBase();
const title =
  'why' in base ? `histories across the merge base (skipped: ${base.why})` : 'histories across the merge base';

describe.skipIf('why' in base)(title, () => {
  it('of this checkout are replayed by the code of the merge base, as after a rollback', { timeout }, async () => {
    report('rollback', await replay(checkOut(), root));
  });

  it('of the merge base are replayed by the code of this checkout, as in a rollout', { timeout }, async () => {
    report('rollout', await replay(root, checkOut()));
  });
});

/** Writes the files of the merge base that a replay needs into a temporary folder. */
function checkOut(): string {
  const folder = temporaryFolder();
  const { commit } = base as { commit: string };
  const archive = execFileSync('git', ['archive', commit, 'package.json', 'apps', 'workflows', 'test/workflows'], {
    cwd: root,
    maxBuffer: 256 * 1024 * 1024,
  });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

/**
 * Returns the histories of one folder that the code of another cannot replay, each with the name of
 * its error.
 */
async function replay(code: string, recorded: string): Promise<string[]> {
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: path.join(code, 'workflows/index.ts'),
    logger: new DefaultLogger('ERROR'),
  });
  const folder = path.join(recorded, 'test/workflows/histories');
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  expect(files.length).toBeGreaterThan(10);
  const kinds = new Map<string, string>();
  const histories = files.map((name) => {
    const saved = JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as { workflowId: string; history: object };
    kinds.set(saved.workflowId, name);
    return saved;
  });
  const failed: string[] = [];
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    if (error !== undefined) failed.push(`${kinds.get(workflowId)}: ${error.name}`);
  }
  return failed;
}

/** Fails the run if a release was tagged before this commit; otherwise prints what would fail. */
function report(direction: string, failed: string[]): void {
  const isReleased = Boolean(git('tag', '--list', 'v[0-9]*', '--merged', 'HEAD'));
  if (isReleased) expect(failed).toEqual([]);
  else if (failed.length > 0)
    console.warn(`before the first release, no failure: a ${direction} cannot replay`, failed);
}
