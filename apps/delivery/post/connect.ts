import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import type { Cause } from '#domain/webhooks/causes.ts';
import { causeOfError, causeOfHandshake } from './fault.ts';

/** A socket, or why it could not be opened. */
export type OpenedSocket = { ok: true; socket: Socket } | { ok: false; cause: Cause };

/** How long one of several addresses may take. Node's 250 ms is too short for some receivers. */
const addressTimeoutMs = 2_000;

/** Connects to one of the checked addresses, in their order. The name is not resolved again. */
export function openConnection(options: {
  hostname: string;
  addresses: readonly string[];
  port: number;
  signal: AbortSignal;
}): Promise<OpenedSocket> {
  const addresses = options.addresses.map((address) => ({ address, family: isIP(address) }));
  const socket = connect({
    host: options.hostname,
    port: options.port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    lookup: (_hostname, _options, callback) => callback(null, addresses),
  });
  return reach(socket, 'connect', options.signal);
}

/**
 * Opens TLS over a connection: 1.2 or newer, with a certificate for the host of the URL. `ca` (PEM)
 * replaces Node's authorities. No session is resumed: some receivers reject what they offered.
 */
export function secureConnection(options: {
  socket: Socket;
  hostname: string;
  ca?: string | undefined;
  signal: AbortSignal;
}): Promise<OpenedSocket> {
  const { hostname, ca } = options;
  const socket = connectTls({
    socket: options.socket,
    host: hostname,
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
    ...(ca === undefined ? {} : { ca }),
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true, // a variable could turn it off
    ALPNProtocols: ['http/1.1'],
  });
  return reach(socket, 'secureConnect', options.signal);
}

/** Waits until the socket emits `event` or ends, or the signal aborts. Later errors are ignored. */
function reach(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<OpenedSocket> {
  const isTls = event === 'secureConnect';
  return new Promise((resolve) => {
    const end = (result: OpenedSocket) => {
      signal.removeEventListener('abort', abort);
      socket.off('close', close);
      if (!result.ok) socket.destroy();
      resolve(result);
    };
    const causeOf = (error: Error | null) =>
      socket instanceof TLSSocket
        ? causeOfHandshake(error, socket.getPeerX509Certificate() !== undefined)
        : causeOfError(error, 'connect');
    const fail = (error: Error | null) => end({ ok: false, cause: causeOf(error) });
    const close = () => fail(null);
    const abort = () => end({ ok: false, cause: isTls ? 'tls_timeout' : 'connection_timeout' });
    socket.once(event, () => end({ ok: true, socket }));
    socket.on('error', fail);
    socket.once('close', close);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
}
