import { compiledCode } from '../../apps/dev/compiled-code.ts';

/**
 * What a process of the project gets from this environment beside its settings: where programs are,
 * and compiled code to share with the others.
 */
export const childEnvironment: Readonly<Record<string, string>> = { PATH: process.env.PATH ?? '', ...compiledCode };
