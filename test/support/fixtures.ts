import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../fixtures', import.meta.url));

/**
 * Returns the path of a file of `test/fixtures`: `us.json` and `ca.json` are organizations in the
 * import format, `us.expected.json` and `ca.expected.json` the responses to all their reads,
 * computed by another program.
 */
export function fixturePath(name: string): string {
  return path.join(folder, name);
}
