/** What a test drives a client by, in whatever language it is. */

/** Options of a client, in the units of Python. */
export interface ClientSettings {
  key?: string | undefined;
  baseUrl?: string;
  timeoutSeconds?: number;
  maxRetries?: number;
  maxWaitSeconds?: number;
  hasCache?: boolean;
  /** Waits are real instead of moving the test's clock. */
  hasRealWaits?: boolean;
  /** Variables that the client finds; it has no others of its own. */
  environment?: Record<string, string>;
}

/** A response or an error as the client returned it. */
export interface Result {
  data?: unknown;
  isUnchanged?: boolean;
  etag?: string;
  requestId?: string | null;
  rateLimit?: { remaining: number; seconds: number } | null;
  keyExpires?: string | null;
  /** The caller has ended the call: what it raised is the caller's reason, and no error of the client. */
  hasEnded?: true;
  error?: {
    code: string;
    status: number | null;
    requestId: string | null;
    retryAfterSeconds: number | null;
    /** For people. */
    message?: string;
  };
}

export interface DrivenClient {
  /** Calls a read by its operation id. */
  call(operationId: string, organizationId: string, ifNoneMatch?: string): Promise<Result>;
  /** Ends the call that runs, as the language does: by a signal, or by cancelling its task. */
  end(): void;
  /** The seconds of each wait so far. Its clock moves only by these waits. */
  waits: number[];
  /** Everything that the language prints of the client and of the errors that it has thrown. */
  print(): Promise<string>;
}

export interface Driver {
  name: string;
  /** Whether a caller can end a call. */
  canEnd: boolean;
  /**
   * Creates a client with a clock of the test.
   *
   * @param onWait - runs while the client waits.
   * @returns the text of the error when the client cannot be created.
   */
  create(settings: ClientSettings, onWait?: () => Promise<void>): Promise<DrivenClient | string>;
}
