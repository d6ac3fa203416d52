/** A shell in which a test types the commands of the guide, against a real API server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { type ApiServer, kubernetesBin } from '#test/api-server.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { getTool } from '../../charts/tools.ts';
import { openShell } from '../operations/shell.ts';

const helm = await getTool('helm');

/** Opens it in a folder that has the charts. Values are files of this folder, as on the pages. */
export async function openGuideShell(server: Pick<ApiServer, 'kubeConfig'>, NS: string) {
  const folder = temporaryFolder();
  const KUBECONFIG = path.join(folder, 'kubeconfig.json');
  writeFileSync(KUBECONFIG, server.kubeConfig.exportConfig());
  symlinkSync(path.join(import.meta.dirname, '../../charts'), path.join(folder, 'charts'));
  symlinkSync(helm, path.join(folder, 'helm'));
  const PATH = [folder, path.dirname(process.execPath), kubernetesBin, childEnvironment.PATH].join(':');
  const env = { ...childEnvironment, PATH, KUBECONFIG, HOME: folder, NS, RELEASE: 'us', NAME: 'us-org-api' };
  const shell = openShell(env);
  await shell(`cd ${folder}`);
  return {
    shell,
    /** Runs a command of Helm that does not wait for pods, because no node runs them. */
    runHelm: (command: string) => shell(command.replace(/ --wait(-for-jobs)?(?= |$)/g, '')),
    /** Starts a command. Returns what kills it. */
    start(command: string): () => Promise<void> {
      const child = spawn('bash', ['-c', `exec ${command}`], { env, cwd: folder, stdio: 'ignore' });
      const ended = once(child, 'exit');
      return async () => {
        child.kill('SIGKILL');
        await ended;
      };
    },
    /** Adds a block of the guide, or these values, to the file of values that it names. */
    addValues(block: string, values: object = parse(block, { merge: true })): void {
      const [, name = ''] = /^# ([\w-]+\.yaml)/.exec(block) ?? [];
      const file = path.join(folder, name);
      const before = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
      writeFileSync(file, JSON.stringify(mergeValues(before, values)));
    },
    writeFile: (name: string, text: string): void => writeFileSync(path.join(folder, name), text),
    async listRevisions(): Promise<{ revision: number; status: string }[]> {
      const printed = await shell('helm history $RELEASE -n $NS -o json || echo []');
      return JSON.parse(printed) as { revision: number; status: string }[];
    },
  };
}

/** Merges values as Helm does. */
export const mergeValues = (one: object, other: object): object =>
  Object.fromEntries(
    [...new Set([...Object.keys(one), ...Object.keys(other)])].map((key) => {
      const [first, second] = [Reflect.get(one, key) as unknown, Reflect.get(other, key) as unknown];
      const areMaps = [first, second].every((value) => typeof value === 'object' && value && !Array.isArray(value));
      return [key, areMaps ? mergeValues(first as object, second as object) : second === undefined ? first : second];
    }),
  );
