/**
 * Gets, one after the other, the programs that tests need and that take minutes to get where a
 * machine lacks them: the browser from Debian, the others built by Go. Ends with status 0 whatever
 * happens: a test that needs what is missing says so, with its remedy.
 */
import { getTemporalProgram } from '../../apps/dev/servers/temporal-program.ts';
import { findTool } from './chart-tools.ts';
import { installHeadlessShell } from './chromium.ts';

const report = (line: string) => console.log(`  ${line}`);

await installHeadlessShell();
await getTemporalProgram(report).catch((error: Error) => report(error.message));
for (const name of ['glua', 'promtool', 'kubeconform', 'kube-score'] as const) findTool(name);
