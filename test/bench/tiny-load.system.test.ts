/**
 * Each benchmark with a tiny load: it ends with its results. What it measures is not judged, and may
 * be over its budget.
 */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { runCommand } from '#test/run-command.ts';
import { installPackages } from '../../apps/dev/servers/apt.ts';

it.each([
  {
    name: 'deliveries, with posts to a receiver that hangs',
    args: ['deliveries', '--quick', '--only', 'isolation', '--store', 'memory', '--rounds', '1', '--seconds', '2'],
    results: [/beside: .*; [1-9]\d* other posts a turn/],
  },
  {
    name: 'reads',
    program: 'wrk',
    args: ['reads', '--quick', '--rounds', '1', '--seconds', '1'],
    results: [
      /getOrg: wrk with/,
      /getFirmRoster.*: wrk with/,
      /gzip: encoding takes -?\d+ % of/,
      /entries in the audit log/,
      /flat is 1\.00/,
    ],
  },
  {
    name: 'growth',
    args: ['growth', '--rows', '100,200', '--rounds', '1'],
    results: [/^beside 200 open deliveries, suspended .* \d/m, /^beside 200 webhooks with one event each .* \d/m],
  },
  {
    name: 'platform',
    args: ['platform', '--rows', '5', '--rounds', '1'],
    results: [/^A commit for each row/m, /^5 rows a commit/m, /^end_grant +\d+ +\d+ +\d/m],
  },
])('a benchmark ends with its results: $name', { timeout: 600_000 }, async ({ program, args, results }) => {
  if (program !== undefined && spawnSync(program, ['-v']).error !== undefined)
    await installPackages([program], console.log);
  const { code, stdout, stderr } = await runCommand(['apps/dev/subcommand.ts', 'bench', ...args], childEnvironment);
  for (const result of results) expect(stdout + stderr).toMatch(result);
  expect(code, stderr).toBeLessThanOrEqual(/OVER BUDGET/.test(stderr) ? 1 : 0);
});
