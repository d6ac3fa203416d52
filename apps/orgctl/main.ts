import { startCommand } from '#runtime/command-line.ts';
import { runOrgctl } from './run.ts';

/**
 * `npm run -s orgctl -- NOUN VERB … --region us [--json]`: operators' commands, with the rights of
 * their database login. Results go to standard output, everything else to standard error. Exit code
 * 0, 1 when rejected or failed, 2 for a wrong call, 130 after Ctrl-C.
 */
startCommand({ usage: null });
process.exitCode = await runOrgctl(process.argv.slice(2), {
  environment: process.env,
  writeOutput: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
});
