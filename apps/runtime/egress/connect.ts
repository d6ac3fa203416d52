import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { FailureCause } from '#domain/webhooks/causes.ts';
import { chooseCause, findErrorCause, findHandshakeCause } from './fault.ts';
import { tryStaggered } from './staggered.ts';

/** A socket, or why it could not be opened. */
export type OpenedSocket = { ok: true; socket: Socket } | { ok: false; cause: FailureCause };

/**
 * How much of a receiver's connection is read, TLS included. What may come up to a status line fits: OpenSSL
 * takes 100 KB of certificates, and the reader of the status line 16 KiB.
 */
const mostBytes = 131_072;
const countEveryMs = 100;

export const isTooLong = (connection: Socket): boolean => connection.bytesRead > mostBytes;

/**
 * Closes a connection of which more than `limit` bytes were read. Only its own count says so while TLS
 * reads handshakes, tickets and renegotiations, for which no socket has an event.
 */
function boundBytes(connection: Socket, limit: number): void {
  const timer = setInterval(() => connection.bytesRead > limit && connection.destroy(), countEveryMs);
  connection.once('close', () => clearInterval(timer));
}

/** Connects to one of the checked addresses, which are tried as RFC 8305 says. */
export async function openConnection(options: {
  addresses: readonly string[];
  port: number;
  signal: AbortSignal;
  /** How many bytes may be read, TLS included. 128 KiB. */
  limit?: number;
}): Promise<OpenedSocket> {
  const { addresses, port, signal, limit = mostBytes } = options;
  const { success, failures } = await tryStaggered(
    addresses,
    (host, either) =>
      reach(connect({ host, port, noDelay: true }), 'connect', either, (error) => findErrorCause(error, 'connect')),
    signal,
  );
  if (success !== null) boundBytes(success.socket, limit);
  return success ?? { ok: false, cause: chooseCause(failures.map(({ cause }) => cause)) };
}

/**
 * Opens TLS over a connection: 1.2 or newer, with a certificate for the host of the URL. `ca` (PEM)
 * replaces Node's authorities. No session is resumed: some receivers reject those that they offered.
 */
export function secureConnection(options: {
  socket: Socket;
  hostname: string;
  ca?: string | undefined;
  signal: AbortSignal;
}): Promise<OpenedSocket> {
  const { hostname, ca, signal } = options;
  const socket = connectTls({
    socket: options.socket,
    host: hostname,
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
    ...(ca === undefined ? {} : { ca }),
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true, // a variable could turn it off
    ALPNProtocols: ['http/1.1'],
  });
  return reach(socket, 'secureConnect', signal, (error) =>
    findHandshakeCause(error, socket.getPeerX509Certificate() !== undefined),
  );
}

/** Waits until the socket emits `event` or ends, or the signal aborts. Later errors are ignored. */
function reach(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
  getCause: (error: Error | null) => FailureCause,
): Promise<OpenedSocket> {
  const late = event === 'connect' ? 'connection_timeout' : 'tls_timeout';
  return new Promise((resolve) => {
    const end = (result: OpenedSocket) => {
      signal.removeEventListener('abort', abort);
      socket.off('close', close);
      if (!result.ok) socket.destroy();
      resolve(result);
    };
    const fail = (error: Error | null) => end({ ok: false, cause: getCause(error) });
    const close = () => fail(null);
    const abort = () => end({ ok: false, cause: late });
    socket.once(event, () => end({ ok: true, socket }));
    socket.on('error', fail);
    socket.once('close', close);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
}
