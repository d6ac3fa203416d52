import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BatchV1Api, PatchStrategy, setHeaderOptions, type V1Job } from '@kubernetes/client-node';
import { vi } from 'vitest';
import type { ApiServer } from '#test/api-server.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { waiting } from './declared.ts';

const execute = promisify(execFile);
const cwd = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs the container of a Job here when the Job exists, and marks the Job as complete, as the
 * kubelet and the Job's controller do. @throws Error when the program fails.
 */
export async function runJob(
  { kubeConfig }: Pick<ApiServer, 'kubeConfig'>,
  { namespace, name, kubeconfig }: { namespace: string; name: string; kubeconfig: string },
): Promise<void> {
  const api = kubeConfig.makeApiClient(BatchV1Api);
  const job: V1Job = await vi.waitFor(() => api.readNamespacedJob({ namespace, name }), waiting);
  const [container] = job.spec?.template.spec?.containers ?? [];
  const [, program = ''] = container?.command ?? [];
  const fields: Record<string, string> = { 'metadata.namespace': namespace, 'metadata.name': `${name}-1` };
  const settings = (container?.env ?? []).map((one) => [
    one.name,
    one.value ?? fields[one.valueFrom?.fieldRef?.fieldPath ?? ''] ?? '',
  ]);
  const env = { ...childEnvironment, ...Object.fromEntries(settings), KUBECONFIG: kubeconfig };
  await execute(process.execPath, [program, ...(container?.args ?? [])], { cwd, env });
  const now = new Date();
  const met = ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True', lastTransitionTime: now }));
  const status = { startTime: now, completionTime: now, succeeded: 1, conditions: met };
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
  await api.patchNamespacedJobStatus({ namespace, name, body: { status } }, merge);
}
