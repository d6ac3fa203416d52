/**
 * Installs, one after another, the programs that tests need and that take minutes to install: the
 * browser from Debian, the others built by Go. The exit code is always 0: a test that lacks a
 * program reports it with its remedy.
 */
import { getTemporalProgram } from '../../apps/dev/servers/temporal-program.ts';
import { findTool } from '../../charts/tools.ts';
import { installHeadlessShell } from './chromium.ts';

const report = (line: string) => console.log(`  ${line}`);

await installHeadlessShell();
await getTemporalProgram(report).catch((error: Error) => report(error.message));
for (const name of ['glua', 'promtool', 'kubeconform', 'kube-score', 'actionlint'] as const) await findTool(name);
