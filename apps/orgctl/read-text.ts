import { readFile } from 'node:fs/promises';
import { CommandError } from './errors.ts';

/**
 * Returns the text of a file; `-` is standard input.
 *
 * @throws CommandError when it cannot be read.
 */
export const readText = (file: string): Promise<string> =>
  readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((cause: Error) => {
    throw new CommandError(`${file} cannot be read: ${cause.message}.`);
  });
