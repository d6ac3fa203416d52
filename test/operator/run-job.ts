import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BatchV1Api, PatchStrategy, setHeaderOptions, type V1Container, type V1Job } from '@kubernetes/client-node';
import { vi } from 'vitest';
import type { ApiServer } from '#test/api-server.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { waiting } from './declared.ts';

const execute = promisify(execFile);
const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the settings of a container, with the fields of its pod. */
export function readEnvironment(
  container: V1Container | undefined,
  pod: { namespace: string; name: string },
): Record<string, string> {
  const fields: Record<string, string> = { 'metadata.namespace': pod.namespace, 'metadata.name': pod.name };
  const settings = (container?.env ?? []).map(({ name, value, valueFrom }) => [
    name,
    value ?? fields[valueFrom?.fieldRef?.fieldPath ?? ''] ?? '',
  ]);
  return Object.fromEntries(settings);
}

interface RunJobOptions {
  namespace: string;
  name: string;
  /** Settings that name files of this machine in place of the pod's. */
  settings: Record<string, string>;
}

/**
 * Runs the container of a Job here when the Job exists, and marks the Job as complete, as the
 * kubelet and the Job's controller do. Returns the output. @throws Error when the program fails.
 */
export async function runJob(
  { kubeConfig }: Pick<ApiServer, 'kubeConfig'>,
  { namespace, name, settings }: RunJobOptions,
): Promise<string> {
  const api = kubeConfig.makeApiClient(BatchV1Api);
  const job: V1Job = await vi.waitFor(() => api.readNamespacedJob({ namespace, name }), waiting);
  const [container] = job.spec?.template.spec?.containers ?? [];
  const [, program = ''] = container?.command ?? [];
  const env = { ...childEnvironment, ...readEnvironment(container, { namespace, name: `${name}-1` }), ...settings };
  const { stdout } = await execute(process.execPath, [program, ...(container?.args ?? [])], { cwd: repository, env });
  const now = new Date();
  const met = ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True', lastTransitionTime: now }));
  const status = { startTime: now, completionTime: now, succeeded: 1, conditions: met };
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
  await api.patchNamespacedJobStatus({ namespace, name, body: { status } }, merge);
  return stdout;
}
