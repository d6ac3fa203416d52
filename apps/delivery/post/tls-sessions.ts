import { BoundedMap } from '#runtime/flow/bounded-map.ts';

/** A worker's sessions; each is a few KiB. */
const mostSessions = 1_000;
/** A resumed session does not check the certificate again, so a full handshake follows in time. */
const lifetimeMs = 600_000;

interface Kept {
  session: Buffer;
  /** When its certificate was checked, by `performance.now`. */
  checkedAtMs: number;
}

/**
 * Keeps the newest TLS session of each webhook and origin, which makes the next handshake cheaper.
 * Connections are not kept: with HTTP/1.1, a late second response would be taken for that of the
 * next post. Webhooks share no session.
 */
export class TlsSessions {
  /** By webhook and origin, the oldest first. */
  readonly #kept = new BoundedMap<string, Kept>(mostSessions);

  /** Returns the session of a webhook and origin whose certificate was checked lately, or null. */
  find(webhookId: string, origin: string): Buffer | null {
    const kept = this.#kept.get(`${webhookId} ${origin}`);
    return kept !== undefined && performance.now() - kept.checkedAtMs < lifetimeMs ? kept.session : null;
  }

  /** Keeps a session. One of a resumed handshake keeps the time at which the certificate was checked. */
  keep(webhookId: string, origin: string, session: Buffer, isResumed: boolean): void {
    const key = `${webhookId} ${origin}`;
    const before = this.#kept.get(key);
    const checkedAtMs = isResumed ? before?.checkedAtMs : performance.now();
    if (checkedAtMs === undefined) return;
    this.#kept.set(key, { session, checkedAtMs });
  }
}
