/**
 * `npm run bench:retention`: the cost of retention of deliveries.
 * README.md in this folder explains the figures.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { removeDeadRunFolders } from '#test/run-folder.ts';
import { measurePurge } from './purge.ts';
import { startStack } from './stack.ts';

startCommand({
  usage: 'Usage: npm run bench:retention\n\nMeasures the retention of deliveries.',
  read() {
    const [first] = parseArgs({ options: {}, allowPositionals: true }).positionals;
    if (first !== undefined) throw new Error(`${first} is an argument, and there is none.`);
  },
});

const startedAt = performance.now();
const report = (line: string) =>
  console.error(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(3)} s  ${line}`);

console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'})`);
await removeDeadRunFolders(report);
const stack = await startStack(report);
try {
  const purge = await measurePurge(stack, report);
  console.log('\nPurging beside deliveries');
  for (const line of purge) console.log(`  ${line}`);
} finally {
  await stack.stop();
}
