import {
  ApiException,
  createConfiguration,
  type KubeConfig,
  type Middleware,
  ServerConfiguration,
  type V1Status,
} from '@kubernetes/client-node';
import { findSignal } from '#runtime/flow/cancellation.ts';

/** A request as metrics show it: `GET regions`, `PATCH regions/status`. */
export interface SentRequest {
  method: string;
  resource: string;
}

const isSet = <T>(value: T | undefined): value is T => value !== undefined;

type ApiClass<T> = new (configuration: ReturnType<typeof createConfiguration>) => T;

/**
 * Makes API clients of one API server whose calls each have a deadline, which the library's own
 * have not, and are reported. The signal of `runWithSignal` ends them.
 */
export function createApis(options: {
  kubeConfig: KubeConfig;
  deadlineMs: number;
  onRequest: (request: SentRequest) => void;
}) {
  const { kubeConfig, deadlineMs, onRequest } = options;
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null) throw new Error('the kubeconfig names no cluster');
  const bounded: Middleware = {
    async pre(context) {
      context.setSignal(AbortSignal.any([AbortSignal.timeout(deadlineMs), findSignal()].filter(isSet)));
      onRequest({ method: context.getHttpMethod(), resource: parseResource(context.getUrl()) });
      return context;
    },
    post: async (context) => context,
  };
  return <T>(api: ApiClass<T>): T =>
    new api(
      createConfiguration({
        baseServer: new ServerConfiguration(cluster.server, {}),
        authMethods: { default: kubeConfig },
        promiseMiddleware: [bounded],
      }),
    );
}

/** Of `/apis/g/v1/namespaces/n/regions/region/status`: `regions/status`. */
function parseResource(url: string): string {
  const parts = new URL(url, 'http://server').pathname.split('/').filter(Boolean);
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3);
  const [plural = 'discovery', , subresource] = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest;
  return subresource === undefined ? plural : `${plural}/${subresource}`;
}

/** Returns the HTTP status with which the API server rejected; undefined for any other error. */
export const findStatus = (error: unknown): number | undefined =>
  error instanceof ApiException ? error.code : undefined;

/** Returns null for a response that is not the API server's, such as a proxy's page. */
function readBody({ body }: ApiException<unknown>): V1Status | null {
  try {
    return (typeof body === 'string' ? JSON.parse(body) : body) as V1Status;
  } catch {
    return null;
  }
}

/** A field that another manager owns and has given another value. */
export interface FieldConflict {
  /** Such as `.status.conditions[type="Ready"].message`. */
  field: string;
  manager: string;
}

/** Returns the fields for which the API server rejected an apply; none for any other error. */
export function listConflicts(error: unknown): FieldConflict[] {
  const causes = error instanceof ApiException ? readBody(error)?.details?.causes : undefined;
  return (causes ?? [])
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .map(({ field = '', message = '' }) => ({
      field,
      manager: /^conflict with "([^"]*)"/.exec(message)?.[1] ?? 'unknown',
    }));
}

/** Names each field and its manager in a sentence. */
export const describeConflicts = (conflicts: readonly FieldConflict[]): string =>
  conflicts.map(({ field, manager }) => `The field manager ${manager} owns ${field}.`).join(' ');

/** Returns the response to a request; null when it was rejected with this HTTP or gRPC status. */
export async function nullOn<T>(code: number, request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (cause) {
    if ((cause as { code?: unknown }).code === code) return null;
    throw cause;
  }
}
