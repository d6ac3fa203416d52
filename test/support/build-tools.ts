/**
 * Gets, one after the other, the programs that tests need and that Go has to build where a machine lacks them, so that no test waits for minutes.
 * Ends with status 0 whatever happens: a test that needs what is missing says so, with its remedy.
 */
import { getTemporalProgram } from '../../apps/dev/servers/temporal-program.ts';
import { findTool } from './chart-tools.ts';

const report = (line: string) => console.log(`  ${line}`);

await getTemporalProgram(report).catch((error: Error) => report(error.message));
for (const name of ['promtool', 'kubeconform', 'kube-score'] as const) findTool(name);
