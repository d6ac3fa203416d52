import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../fixtures', import.meta.url));

/**
 * Returns the path of a file of `test/fixtures`: `us.json` and `ca.json`, organizations in the import format, and
 * `us.expected.json` and `ca.expected.json`, the answers to every read of them, computed by another program.
 */
export function fixturePath(name: string): string {
  return path.join(folder, name);
}
