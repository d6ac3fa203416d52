import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { readWhole, startCommand } from '#runtime/command-line.ts';
import { StartupError } from '#runtime/errors.ts';
import { type ChaosResult, describeResult, runChaos } from './run.ts';

/**
 * `npm run tool -- chaos`: 2,000 deliveries (100 events to 20 webhooks) while all processes are killed
 * repeatedly. `-- --seed 7` repeats a run's receivers and order of kills, `--events` and
 * `--webhooks` (at most 20) change its size. The exit code is 1 when a problem is found; the output
 * lists the problems.
 */
async function main({ events, webhooks, seed }: ReturnType<typeof readOptions>): Promise<number> {
  console.log(`${events * webhooks} deliveries, seed ${seed}`);
  const report = (line: string) => console.error(`  ${line}`);
  const result = await runChaos({
    events,
    webhooks,
    seed,
    kills: 4,
    hasLongFaults: true,
    settleDeadlineMs: 900_000,
    report,
  });
  for (const line of describeResult(result)) console.log(line);
  const problems = [...result.problems, ...(webhooks < wellMixed ? [] : listMissedFaults(result))];
  for (const problem of problems) console.error(`WRONG: ${problem}`);
  console.log(problems.length === 0 ? 'No delivery was lost, no secret leaked.' : `Repeat with --seed ${seed}.`);
  return problems.length === 0 ? 0 : 1;
}

/** With this many webhooks, some delivery waits for its next attempt at any time. */
const wellMixed = 10;

/** Lists the faults without effect, about which the run proves nothing. */
function listMissedFaults({ claims, late, lostRuns, forgotten }: ChaosResult): string[] {
  return [
    ...(claims > 0 ? [] : ['fault: no relay was killed while slots were reserved']),
    ...(late !== null && late > 0 ? [] : ['fault: no delivery was put back because its code could not replay']),
    ...(lostRuns !== null && lostRuns > 0 ? [] : ['fault: no run waited in Temporal’s store when it was lost']),
    ...((forgotten?.events ?? 0) > 0 ? [] : ['fault: PostgreSQL forgot no event']),
  ];
}

function readOptions() {
  const { values } = parseArgs({
    options: { seed: { type: 'string' }, events: { type: 'string' }, webhooks: { type: 'string' } },
  });
  const seed = values.seed ?? String(randomInt(1, 1_000_000));
  return {
    events: readWhole('--events', values.events ?? '100', 10_000),
    webhooks: readWhole('--webhooks', values.webhooks ?? '20', 20),
    seed: readWhole('--seed', seed, Number.MAX_SAFE_INTEGER),
  };
}

const options = startCommand({
  usage:
    'Usage: npm run tool -- chaos [--seed N] [--events N] [--webhooks N]\n\nKills every process while deliveries run.',
  read: readOptions,
});
process.once('SIGINT', () => process.exit(1)); // started processes end with this one
process.once('SIGTERM', () => process.exit(1));
try {
  process.exitCode = await main(options);
} catch (error) {
  if (!(error instanceof StartupError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
