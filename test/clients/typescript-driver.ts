import { inspect } from 'node:util';
import { type ApiResponse, type CallOptions, OrgApi, OrgApiError } from '../../apps/clients/typescript/src/index.ts';
import type { Driver, Result } from './driver.ts';

type Call = (organizationId: string, options: CallOptions) => Promise<ApiResponse<unknown>>;

/** The TypeScript client in this process. */
export const typescriptDriver: Driver = {
  name: 'TypeScript',
  async create(settings, onWait = async () => {}) {
    const waits: number[] = [];
    const printed: unknown[] = [];
    let nowMs = 0;
    const clock = {
      now: () => nowMs,
      async wait(ms: number) {
        waits.push(ms / 1_000);
        await onWait();
        nowMs += ms;
      },
    };
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
      const read = (client as unknown as Record<string, Call>)[operationId]?.bind(client);
      try {
        return (await read?.(organizationId, ifNoneMatch === undefined ? {} : { ifNoneMatch })) ?? {};
      } catch (error) {
        if (!(error instanceof OrgApiError)) throw error;
        printed.push(error);
        const { code, status, requestId, retryAfterSeconds } = error;
        return { error: { code, status, requestId, retryAfterSeconds } };
      }
    };
    const print = async () =>
      [client, ...printed]
        .flatMap((one) => [inspect(one, { showHidden: true, depth: 10 }), JSON.stringify(one), String(one)])
        .join('\n');
    return { call, waits, print };
  },
};
