/**
 * Installs, one after another, the programs that `npm run test:system` needs and that take minutes
 * to install: the browser from Debian, the others built by Go. The exit code is always 0: a test
 * that lacks a program reports it with its remedy.
 */
import { getTemporalProgram } from '../../apps/dev/servers/temporal-program.ts';
import { findTool, type ToolName } from '../../charts/tools.ts';
import { installHeadlessShell } from './chromium.ts';

const report = (line: string) => console.log(`  ${line}`);

await installHeadlessShell();
await getTemporalProgram(report).catch((error: Error) => report(error.message));
/** Helm is last, because the cluster test builds it among its programs. */
const names: ToolName[] = ['glua', 'promtool', 'kubeconform', 'kube-score', 'actionlint', 'controller-gen', 'helm'];
for (const name of names) await findTool(name);
