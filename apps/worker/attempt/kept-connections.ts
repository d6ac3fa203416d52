import { Agent } from 'node:http';
import type { Socket } from 'node:net';

/** The most idle connections of one webhook: as many as it has concurrency slots. */
const idlePerWebhook = 10;
/** The most idle connections of the process; each is a file descriptor. */
const idleInAll = 500;

/** How long a connection may be idle. Load balancers drop idle ones after 60 s or more. */
const defaultIdleMs = 30_000;

/**
 * An open connection, on which node:http makes one post after another. When idle, it closes after
 * `idleMs`, a second before the time of the receiver's `Keep-Alive`, and when a byte arrives.
 */
export class Connection extends Agent {
  readonly socket: Socket;
  /** The address that was judged before the connection was opened. */
  readonly address: string;
  /** Called when it has closed. */
  onClosed = () => {};
  readonly #openedAt = performance.now();

  constructor(socket: Socket, address: string, idleMs = defaultIdleMs) {
    super({ keepAlive: true, maxSockets: 1, timeout: idleMs });
    this.socket = socket;
    this.address = address;
    socket.once('close', () => this.onClosed());
  }

  override createConnection(): Socket {
    return this.socket;
  }

  isOpen(): boolean {
    const { destroyed, readable, writable } = this.socket;
    return !destroyed && readable && writable;
  }

  ageMs(): number {
    return performance.now() - this.#openedAt;
  }

  close(): void {
    this.socket.destroy();
  }
}

/**
 * Keeps connections to receivers for later posts, which saves the handshakes of TCP and TLS.
 * Webhooks share none, so that one organization's posts cannot affect another's. None is used for
 * longer than `lifetimeMs`, so that a receiver under constant load can move to another address.
 */
export function createKeptConnections({ idleMs = defaultIdleMs, lifetimeMs = 60_000 } = {}) {
  /** Idle connections by webhook and origin; the latest is the last. No list is empty. */
  const idle = new Map<string, Connection[]>();
  /** All idle connections, the one that waits longest first. */
  const byAge = new Map<Connection, string>();

  const isUsable = (connection: Connection) => connection.isOpen() && connection.ageMs() < lifetimeMs;

  function remove(connection: Connection): void {
    const key = byAge.get(connection);
    if (key === undefined) return;
    byAge.delete(connection);
    const others = (idle.get(key) ?? []).filter((other) => other !== connection);
    if (others.length === 0) idle.delete(key);
    else idle.set(key, others);
  }

  /** Returns the latest idle connection, or null. The caller closes it or returns it. */
  function take(key: string): Connection | null {
    for (let latest = idle.get(key)?.at(-1); latest !== undefined; latest = idle.get(key)?.at(-1)) {
      remove(latest);
      if (isUsable(latest)) return latest;
      latest.close();
    }
    return null;
  }

  /** Keeps a connection whose last answer is complete; closes it when there are too many. */
  function keep(key: string, connection: Connection): void {
    const others = idle.get(key) ?? [];
    if (!isUsable(connection) || others.length >= idlePerWebhook) {
      connection.close();
      return;
    }
    const [oldest] = byAge.keys();
    if (byAge.size >= idleInAll && oldest !== undefined) {
      remove(oldest);
      oldest.close();
    }
    idle.set(key, [...(idle.get(key) ?? []), connection]);
    byAge.set(connection, key);
    connection.onClosed = () => remove(connection);
  }

  return {
    /** Returns the connections of one webhook, by the origins of its URLs. */
    of: (webhookId: string) => ({
      idleMs,
      has: (origin: string) => idle.has(`${webhookId} ${origin}`),
      take: (origin: string) => take(`${webhookId} ${origin}`),
      keep: (origin: string, connection: Connection) => keep(`${webhookId} ${origin}`, connection),
    }),
    /** Closes all idle connections. */
    close(): void {
      for (const connection of byAge.keys()) connection.close();
    },
  };
}

export type KeptConnections = ReturnType<typeof createKeptConnections>;
export type WebhookConnections = ReturnType<KeptConnections['of']>;
