import { compiledCode } from '../../apps/dev/compiled-code.ts';

/**
 * What a process of the project gets from this environment beside its settings: the path of
 * programs, and the shared compiled code.
 */
export const childEnvironment: Readonly<Record<string, string>> = { PATH: process.env.PATH ?? '', ...compiledCode };
