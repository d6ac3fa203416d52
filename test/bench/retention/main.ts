/**
 * `npm run bench:retention`: the cost of retention of deliveries, and of partitions instead.
 * README.md in this folder explains the figures.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { removeDeadRunFolders } from '#test/run-folder.ts';
import { comparePartitions } from './partitions.ts';
import { measurePurge } from './purge.ts';
import { startStack } from './stack.ts';

const only = startCommand({
  usage: [
    'Usage: npm run bench:retention -- [purge | partitions]',
    'Measures the retention of deliveries, and partitions instead.',
  ].join('\n\n'),
  read() {
    const { positionals } = parseArgs({ options: {}, allowPositionals: true });
    const [part = null, ...more] = positionals;
    if (more.length > 0 || (part !== null && part !== 'purge' && part !== 'partitions'))
      throw new Error('The only argument is purge or partitions.');
    return part;
  },
});

const startedAt = performance.now();
const report = (line: string) =>
  console.error(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(3)} s  ${line}`);

console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'})`);
await removeDeadRunFolders(report);
const stack = await startStack(report);
try {
  const partitions = only === 'purge' ? [] : await comparePartitions(stack, report);
  const purge = only === 'partitions' ? [] : await measurePurge(stack, report);
  if (only !== 'partitions') console.log('\nPurging beside deliveries');
  for (const line of purge) console.log(`  ${line}`);
  if (only !== 'purge') console.log('\nStatements over those of plain tables, medians, 8 partitions');
  for (const line of partitions) console.log(`  ${line}`);
} finally {
  await stack.stop();
}
