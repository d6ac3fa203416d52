import { homedir } from 'node:os';
import path from 'node:path';

/** Returns the user's cache folder, by the XDG Base Directory Specification. */
export const userCache = (): string => process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');

/** Returns a folder, outside the clone, for what is slow to download or build. */
export const cacheFolder = (...below: string[]): string => path.join(userCache(), 'org-api', ...below);
