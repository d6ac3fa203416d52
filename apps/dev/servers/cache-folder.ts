import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { provideOnce } from '../state-lock.mjs';

/** Returns the user's cache folder, by the XDG Base Directory Specification. */
export const userCache = (): string => process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');

/** Returns a folder, outside the clone, for what is slow to download or build. */
export const cacheFolder = (...below: string[]): string => path.join(userCache(), 'org-api', ...below);

/**
 * Ensures that a folder is complete, once for all processes: one fills a draft, which then gets the
 * folder's name, and the others wait.
 *
 * @param fill - says whether it succeeded.
 * @returns whether the folder is there.
 */
export function provideFolder(
  folder: string,
  fill: (draft: string) => boolean | Promise<boolean>,
  { isThere = () => existsSync(folder), onWait = () => {} } = {},
): Promise<boolean> {
  const draft = `${folder}.draft`;
  const remove = (one: string) => rmSync(one, { recursive: true, force: true });
  return provideOnce(`${folder}.lock`, {
    isThere,
    onWait,
    async provide() {
      remove(draft); // of a process that was killed
      mkdirSync(draft, { recursive: true });
      try {
        if (!(await fill(draft))) return false;
        remove(folder);
        renameSync(draft, folder);
        return true;
      } finally {
        remove(draft);
      }
    },
  });
}
