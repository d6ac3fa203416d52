import { homedir } from 'node:os';
import path from 'node:path';

/** The user's cache folder, as the XDG Base Directory Specification has it. */
export const userCache = (): string => process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');

/**
 * Where what is slow to get or to make is kept for the next run; outside the clone, so that a fresh
 * clone finds it too.
 */
export const cacheFolder = (...below: string[]): string => path.join(userCache(), 'org-api', ...below);
