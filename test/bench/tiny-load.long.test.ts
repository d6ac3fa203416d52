/** The benchmark of deliveries with a tiny load: what it measures is not judged. */
import { expect, it } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { runCommand } from '#test/run-command.ts';

it('the quick benchmark of isolation ends with its results, with posts to a receiver that hangs', {
  timeout: 400_000,
}, async () => {
  const short = ['--quick', '--only', 'isolation', '--store', 'memory', '--rounds', '1', '--seconds', '2'];
  const { code, stdout, stderr } = await runCommand(
    ['apps/dev/subcommand.ts', 'bench', 'deliveries', ...short],
    childEnvironment,
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('done') });
  expect(stdout).toMatch(/beside: .*; [1-9]\d* other posts a turn/);
});
