import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../shared/data', import.meta.url));

/** The path of a file of `../shared/data`, which lies beside the repository, or null where there is none. */
export function sharedData(name: string): string | null {
  const file = path.join(folder, name);
  return existsSync(file) ? file : null;
}

/** Why a test that needs them skips. */
export const sharedDataAbsent = 'the acceptance files (../shared/data) are not beside this repository';
