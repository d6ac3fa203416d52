import { compiledCode } from '../../apps/dev/compiled-code.ts';

const { PATH = '', SOCKETS_FOLDER } = process.env;
const guard = new URL('./child-guard.ts', import.meta.url).href;

/**
 * Returns the variables of this environment that a child process needs beside its settings: the
 * path of programs, the shared compiled code, and in a test the guard of its connections.
 */
export const childEnvironment: Readonly<Record<string, string>> = {
  PATH,
  ...compiledCode,
  ...(SOCKETS_FOLDER !== undefined && { SOCKETS_FOLDER, NODE_OPTIONS: `--import=${guard}` }),
};
