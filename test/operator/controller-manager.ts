import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { type ApiServer, kubernetesBin } from '#test/api-server.ts';

/**
 * Runs Kubernetes' own controllers that end a namespace and delete what an owner had. They stop when
 * the test ends.
 */
export function startControllerManager({ kubeConfig }: Pick<ApiServer, 'kubeConfig'>): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-controllers-'));
  const file = path.join(folder, 'kubeconfig.json');
  writeFileSync(file, kubeConfig.exportConfig());
  const child = spawn(
    path.join(kubernetesBin, 'kube-controller-manager'),
    [
      `--kubeconfig=${file}`,
      '--controllers=namespace-controller,garbage-collector-controller',
      '--leader-elect=false',
      '--secure-port=0',
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
}
