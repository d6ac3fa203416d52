import path from 'node:path';

/** The project's folder. */
export const root = path.join(import.meta.dirname, '../..');

/** The cache of files that processes derive from the project's sources. */
export const cache = path.join(root, 'node_modules/.cache/org-api');

/** Settings for processes that share compiled code. Each then starts in half the time. */
export const compiledCode = { NODE_COMPILE_CACHE: path.join(cache, 'compiled') };
