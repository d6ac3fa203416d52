import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** What a process of ours gets of this environment beside its settings: where programs are, and compiled code to share with the others, which halves the time that it takes to start. */
export const childEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
};
