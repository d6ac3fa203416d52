import { ServerUnavailableError } from '../../apps/dev/servers/process.ts';
import { describeResult, runChaos } from './run.ts';

/**
 * `npm run chaos`: 2,000 deliveries (100 events to 20 webhooks) while everything is killed again
 * and again. `-- --seed 7` repeats a run's receivers and order of kills, `--events` and
 * `--webhooks` (at most 20) change its size. Exit code 1 with what is wrong.
 */
async function main(): Promise<number> {
  const events = readNumber('--events', 100, 10_000);
  const webhooks = readNumber('--webhooks', 20, 20);
  const seed = readNumber('--seed', Math.floor(Math.random() * 1_000_000), Number.MAX_SAFE_INTEGER);
  console.log(`${events * webhooks} deliveries, seed ${seed}`);
  const report = (line: string) => console.log(`  ${line}`);
  const result = await runChaos({ events, webhooks, seed, kills: 4, settleDeadlineMs: 600_000, report });
  for (const line of describeResult(result)) console.log(line);
  for (const problem of result.problems) console.error(`WRONG: ${problem}`);
  console.log(result.problems.length === 0 ? 'Nothing was lost, nothing was told.' : `Repeat with --seed ${seed}.`);
  return result.problems.length === 0 ? 0 : 1;
}

function readNumber(name: string, otherwise: number, max: number): number {
  const at = process.argv.indexOf(name);
  if (at < 0) return otherwise;
  const value = Number(process.argv[at + 1]);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  console.error(`${name} must be a whole number from 1 to ${max}`);
  process.exit(1);
}

process.once('SIGINT', () => process.exit(1)); // what was started ends with us
process.once('SIGTERM', () => process.exit(1));
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof ServerUnavailableError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
