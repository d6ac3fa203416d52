import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(import.meta.dirname, '../..');

/**
 * Does some work in this process, and returns the product's files of which a function was called
 * meanwhile, as paths from the root. What only runs when a module loads is not seen.
 */
export async function listExecutedFiles(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage'); // starts the counts at 0
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const called = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0));
    const files = called.map(({ url }) => path.relative(root, url.startsWith('file:') ? fileURLToPath(url) : url));
    return files.filter((file) => /^(apps|workflows)\//.test(file)).sort();
  } finally {
    session.disconnect();
  }
}
