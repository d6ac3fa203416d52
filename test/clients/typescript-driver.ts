import { inspect } from 'node:util';
import { onTestFinished, vi } from 'vitest';
import { type ApiResponse, type CallOptions, OrgApi, OrgApiError } from '../../apps/clients/typescript/src/index.ts';
import { realClock } from '../../apps/clients/typescript/src/settings.ts';
import type { Driver, Result } from './driver.ts';

type Call = (organizationId: string, options: CallOptions) => Promise<ApiResponse<unknown>>;

/** The TypeScript client in this process. */
export const typescriptDriver: Driver = {
  name: 'TypeScript',
  canEnd: true,
  async create(settings, onWait = async () => {}) {
    const waits: number[] = [];
    const printed: unknown[] = [];
    let nowMs = 0;
    const clock = {
      now: () => nowMs,
      async wait(ms: number, signal?: AbortSignal) {
        waits.push(ms / 1_000);
        const wait = settings.hasRealWaits ? realClock.wait(ms, signal) : Promise.resolve();
        await Promise.all([wait, onWait()]);
        nowMs += ms;
      },
    };
    for (const name of ['ORG_API_KEY', 'ORG_API_BASE_URL']) vi.stubEnv(name, settings.environment?.[name]);
    onTestFinished(() => void vi.unstubAllEnvs());
    let ending = new AbortController();
    let client: OrgApi;
    try {
      client = new OrgApi({
        key: settings.key,
        baseUrl: settings.baseUrl,
        timeoutMs: settings.timeoutSeconds && settings.timeoutSeconds * 1_000,
        maxRetries: settings.maxRetries,
        maxWaitMs: settings.maxWaitSeconds === undefined ? undefined : settings.maxWaitSeconds * 1_000,
        cache: settings.hasCache ? new Map() : undefined,
        clock,
      });
    } catch (error) {
      return inspect(error, { showHidden: true });
    }
    const call = async (operationId: string, organizationId: string, ifNoneMatch?: string): Promise<Result> => {
      ending = new AbortController();
      const { signal } = ending;
      const read = (client as unknown as Record<string, Call>)[operationId]?.bind(client);
      try {
        return (await read?.(organizationId, { signal, ...(ifNoneMatch !== undefined && { ifNoneMatch }) })) ?? {};
      } catch (error) {
        if (signal.aborted && error === signal.reason) return { hasEnded: true };
        if (!(error instanceof OrgApiError)) throw error;
        printed.push(error);
        const { code, status, requestId, retryAfterSeconds, message } = error;
        return { error: { code, status, requestId, retryAfterSeconds, message } };
      }
    };
    const print = async () =>
      [client, ...printed]
        .flatMap((one) => [inspect(one, { showHidden: true, depth: 10 }), JSON.stringify(one), String(one)])
        .join('\n');
    return { call, end: () => ending.abort(new Error('the caller has left')), waits, print };
  },
};
