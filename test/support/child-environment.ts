import { compiledCode } from '../../apps/dev/compiled-code.ts';

/**
 * Returns the variables of this environment that a child process needs beside its settings: the
 * path of programs, and the shared compiled code.
 */
export const childEnvironment: Readonly<Record<string, string>> = { PATH: process.env.PATH ?? '', ...compiledCode };
