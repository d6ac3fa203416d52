/** The samples of the reference, as its page shows them, with the programs that every machine has. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { shareInstallation } from '#test/setup.ts';
import { expectBodies, readShownSamples } from './shown-samples.ts';

const shown = shareInstallation(readShownSamples);
const run = promisify(execFile);

/** Runs shell lines with these variables. @throws Error with what they printed when one fails. */
const runShell = async (lines: string, env: Record<string, string>): Promise<string> =>
  (await run('sh', ['-ec', lines], { env: { ...process.env, ...env } })).stdout;

it('every read has a sample in curl that prints the body', async () => {
  const { environment, reads } = shown();
  expectBodies(reads, await runShell(reads.map(({ code }) => `${code.curl}\nprintf '\\001'`).join('\n'), environment));
});

it('a sample in curl ends with an error when the API rejects the key', async () => {
  const { environment, reads } = shown();
  const rejected = runShell(reads[0]?.code.curl ?? '', { ...environment, ORG_API_KEY: 'aln_us_none' });
  await expect(rejected).rejects.toMatchObject({ code: 22, stdout: expect.stringContaining('invalid_api_key') });
});
