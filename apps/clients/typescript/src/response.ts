/** What a read returns. */
export interface ApiResponse<T> {
  data: T;
  /** Whether the server answered 304: `data` is the cached body, or null for a tag of your own. */
  isUnchanged: boolean;
  /** To send as `ifNoneMatch`. Empty only behind a proxy that removes it. */
  etag: string;
  /** Quote it to the operator of the API: the organization's audit log names it too. */
  requestId: string | null;
  rateLimit: RateLimit | null;
  /** When the key expires (RFC 3339); null if it does not. */
  keyExpires: string | null;
}

export interface RateLimit {
  /** Requests that the key has left. */
  remaining: number;
  /** Seconds until one more becomes available. */
  seconds: number;
}

export interface CallOptions {
  /** The ETag of a response that you store. `data` is null while nothing has changed. */
  ifNoneMatch?: string;
  /** Ends the call, also while it waits; it then throws the signal's reason. */
  signal?: AbortSignal;
}

/** Bodies by path, which a 304 returns again: `new Map()` will do. */
export interface Cache {
  get(path: string): CachedBody | undefined | Promise<CachedBody | undefined>;
  set(path: string, cached: CachedBody): unknown;
}

export interface CachedBody {
  etag: string;
  /** JSON as it came, so that a caller who changes `data` does not change the cache. */
  body: string;
}

/** Time as the client sees it. Tests replace it. */
export interface Clock {
  /** Milliseconds since any moment; never goes back. */
  now(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason when that aborts. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}
