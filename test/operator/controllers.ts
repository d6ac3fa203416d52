import { EventsV1Api, type KubeConfig } from '@kubernetes/client-node';
import { openDatabase } from '#domain/open-database.ts';
import { findSignal } from '#runtime/flow/cancellation.ts';
import { once } from '#runtime/flow/once.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createApis, type SentRequest } from '../../apps/operator/kube/client.ts';
import { createEvents } from '../../apps/operator/kube/events.ts';
import { createSubscriptionRunner } from '../../apps/operator/webhook-subscription/runner.ts';
import { testAllowList, testSealingKeys } from '../support/secrets.ts';

export interface ControllersOptions {
  kubeConfig: KubeConfig;
  namespace: string;
  /** The operator's login. */
  databaseUrl: string;
  allowedOrganizations: readonly string[];
  onAction?: (kind: string) => void;
  /** Called after the first lists, before the first pass. */
  onListed?: () => void;
  onPass?: () => void;
  /** Of a statement, and of a request to the API server. */
  deadlineMs?: number;
}

/** Runs the controllers of webhooks as the leader does, and records their requests. */
export async function startControllers(options: ControllersOptions) {
  const { kubeConfig, namespace, databaseUrl, allowedOrganizations, onAction = () => {} } = options;
  const { onListed = () => {}, onPass = () => {}, deadlineMs = 10_000 } = options;
  const database = await openDatabase({
    server: parsePostgresUrl(databaseUrl),
    applicationName: 'operator',
    poolMax: 8,
    statementTimeoutMs: deadlineMs,
    findSignal,
  });
  const requests: SentRequest[] = [];
  const errors: unknown[] = [];
  const apis = createApis({ kubeConfig, deadlineMs, onRequest: (request) => requests.push(request) });
  const runner = createSubscriptionRunner({
    apis,
    getRegion: async () => ({
      allowedOrganizations,
      database,
      readWebhookSettings: async () => ({ sealingKeys: testSealingKeys, allow: testAllowList }),
    }),
    common: {
      kubeConfig,
      namespace,
      recordEvent: createEvents({ api: apis(EventsV1Api), identity: 'test', onError: () => {} }),
      concurrency: 8,
      onListed: () => {},
      onWatchError: (cause) => errors.push(cause),
      onError: (_name, cause) => errors.push(cause),
      onAction,
      onStatus: () => {},
      onPass,
    },
  });
  await runner.start();
  onListed();
  const leading = new AbortController();
  const ended = runner.lead(leading.signal);
  return {
    requests,
    errors,
    stop: once(async () => {
      leading.abort();
      await ended;
      await runner.stop();
      await database.close();
    }),
  };
}
