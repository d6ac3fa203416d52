import type { DestinationStream } from 'pino';
import { inject, onTestFinished } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { installTemporalLog } from '#workflows/temporal-log.ts';
import { workflowBundle } from '../../apps/dev/workflow-bundle.ts';
import { startWorker } from '../../apps/worker/app.ts';
import { readConfig } from '../../apps/worker/config.ts';
import type { TestDatabase } from './database.ts';
import { testWebhookSecretKeys } from './secrets.ts';
import { allowSettings, allowSockets, guardSockets } from './socket-guard.ts';

// Each process has one runtime of the SDK; its log is not part of a test's output.
installTemporalLog(createLog({ level: 'silent', name: 'test', region: 'us' }));

/** Returns what a worker of `database` reads from its environment, also as a separate process. */
export function workerEnvironment(
  database: TestDatabase,
  settings: Record<string, string> = {},
): Record<string, string> {
  return {
    REGION: 'us',
    WORKER_DATABASE_URL: database.urls.worker,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: testNamespace(),
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    WORKFLOW_BUNDLE: workflowBundle,
    READY_AFTER: '0s',
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
    ...settings,
  };
}

/** Returns the namespace of this process of Vitest, in which one file at a time runs. */
export function testNamespace(): string {
  const namespaces = inject('temporalNamespaces');
  return namespaces[(Number(process.env.VITEST_POOL_ID) - 1) % namespaces.length] ?? '';
}

/** Starts a worker on a test's database, in this process; it stops when the test ends. */
export async function startTestWorker(database: TestDatabase, settings: Record<string, string> = {}) {
  const logLines: string[] = [];
  const environment = workerEnvironment(database, settings);
  const config = readConfig(environment);
  allowSettings(environment);
  guardSockets(onTestFinished, 'worker');
  const destination = { write: (line: string) => void logLines.push(line) } as DestinationStream;
  const worker = await startWorker(
    config,
    createLog({ level: 'info', name: 'worker', region: config.region, destination }),
  );
  allowSockets('test', worker.metricsUrl);
  onTestFinished(() => worker.stop());
  return { ...worker, logLines };
}
