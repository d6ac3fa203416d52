import { connect } from 'node:tls';
import { Connection, isGrpcServiceError, ServiceError } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';

/**
 * What both kinds of connection to Temporal are made with, the worker's native one and the
 * client's.
 */
export function connectionOptions({ address, tls = null, apiKey = null }: TemporalServer) {
  return {
    address,
    tls: tls === null ? null : sdkTls(tls),
    ...(apiKey === null ? {} : { apiKey: apiKey() }),
  };
}

function sdkTls({ serverName, ca, own }: NonNullable<TemporalServer['tls']>) {
  return {
    ...(serverName === null ? {} : { serverNameOverride: serverName }),
    ...(ca === null ? {} : { serverRootCACertificate: Buffer.from(ca) }),
    ...(own === null ? {} : { clientCertPair: { crt: Buffer.from(own.cert), key: Buffer.from(own.key) } }),
  };
}

/** Codes of gRPC by which a server tells that it does not let us in. */
const grpcRefusals: readonly unknown[] = [7 /* PERMISSION_DENIED */, 16 /* UNAUTHENTICATED */];

/** Whether an answer of gRPC says that the server does not let us in. */
export const isRefusal = (error: unknown): boolean => isGrpcServiceError(error) && grpcRefusals.includes(error.code);

/**
 * Codes of gRPC that say nothing about the call: the server was not reached, or does not keep up.
 */
const grpcAway: readonly unknown[] = [
  1 /* CANCELLED */, 4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */, 14 /* UNAVAILABLE */,
];

/**
 * Whether a call of the client failed because Temporal does not answer it, and not for what the
 * call asked.
 */
export function isAway(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return (isGrpcServiceError(cause) && grpcAway.includes(cause.code)) || isRefusal(cause);
}

/** A sentence without its period for `isRefusal`, with what to do. */
export const describeRefusal = ({ address, namespace, apiKey }: TemporalServer): string =>
  `Temporal at ${address} does not let this app into the namespace ${namespace}: ${
    apiKey
      ? 'see that TEMPORAL_API_KEY is valid and may use it'
      : 'it may want TEMPORAL_API_KEY, or another certificate'
  }`;

/**
 * Why a server could not be connected to and what to do, in a sentence without its period; null
 * when nobody answers there.
 */
export async function describeAway(server: TemporalServer): Promise<string | null> {
  const greeting = await greet(server);
  const problem = problemOf(greeting, server.tls ?? null);
  if (problem !== null) return `Temporal at ${server.address} cannot be reached: ${problem}`;
  return greeting !== 'silent' && (await isRefused(server)) ? describeRefusal(server) : null;
}

/** The native connection says no code, so the client's is asked. */
async function isRefused(server: TemporalServer): Promise<boolean> {
  const connection = Connection.lazy({ ...connectionOptions(server), connectTimeout: greetingTimeoutMs });
  try {
    await connection.ensureConnected();
    return false;
  } catch (error) {
    return isRefusal(error instanceof ServiceError ? error.cause : error);
  } finally {
    await connection.close();
  }
}

/**
 * How long a server may take to greet, and to refuse a certificate after it greeted: TLS 1.3 tells
 * that only afterwards.
 */
const greetingTimeoutMs = 3_000;
const refusalTimeoutMs = 500;

/**
 * `silent`: nobody is there, or nobody who talks. `closed`: it hung up in the handshake without a
 * word. `hung up`: the same after it, where TLS 1.3 has the client's certificate judged. Otherwise
 * a code of Node's or OpenSSL's.
 */
type Greeting = 'accepted' | 'silent' | 'closed' | 'hung up' | string;

/**
 * What is wrong with TLS, as a sentence's end with what to do; null when nobody is there, or TLS is
 * not the reason. The SDK's connections tell it in the words of their libraries, so the server is
 * greeted anew and codes decide.
 */
function problemOf(greeting: Greeting, tls: TemporalServer['tls']): string | null {
  const isPlain = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(greeting);
  if (greeting === 'silent') return null;
  if (!tls) return isPlain || greeting === 'closed' ? null : 'it speaks TLS, so set TEMPORAL_TLS=true';
  if (isPlain) return 'it does not speak TLS, so set TEMPORAL_TLS=false, or correct TEMPORAL_ADDRESS';
  return greeting === 'accepted' ? null : reasonOf(greeting, tls.own !== null);
}

function reasonOf(code: string, hasOwn: boolean): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'its certificate is for another name, so set TEMPORAL_TLS_SERVER_NAME to the one that it is for';
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired';
  if (/^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_SIGNATURE)/.test(code))
    return 'its certificate is of an authority that is not believed, so set TEMPORAL_TLS_CA to that authority’s';
  if (code.includes('APPLICATION_PROTOCOL')) return 'it speaks no HTTP/2, so correct TEMPORAL_ADDRESS';
  if (code === 'closed')
    return 'it hangs up in the TLS handshake, so see that it speaks TLS and accepts our certificate';
  if (code !== 'hung up' && !code.includes('ALERT')) return `the TLS handshake ends with ${code}`;
  return hasOwn
    ? 'it does not accept TEMPORAL_TLS_CERT, so use one that is valid now and of an authority that it believes'
    : 'it asks for a certificate, so set TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY';
}

/** One handshake, as the SDK makes it; in plain-text mode only whether there is one to be had. */
function greet({ address, tls }: TemporalServer): Promise<Greeting> {
  const [host = '', port = ''] = address.split(':');
  const options = tls
    ? { ...(tls.ca && { ca: tls.ca }), ...tls.own, ...(tls.serverName && { servername: tls.serverName }) }
    : { rejectUnauthorized: false };
  return new Promise((resolve) => {
    let greeted = false;
    const socket = connect({ host, port: Number(port), ALPNProtocols: ['h2'], ...options });
    const settle = (greeting: Greeting) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greeting);
    };
    let timer = setTimeout(settle, greetingTimeoutMs, 'silent');
    socket.once('secureConnect', () => {
      greeted = true;
      clearTimeout(timer);
      timer = setTimeout(settle, refusalTimeoutMs, 'accepted');
    });
    socket.on('error', ({ code = 'no code' }: NodeJS.ErrnoException) => {
      if (code === 'ECONNRESET' || code === 'EPIPE') settle(greeted ? 'hung up' : 'closed');
      else settle(/^E[A-Z]+$/.test(code) ? 'silent' : code); // the former are the network's
    });
    socket.once('close', () => settle(greeted ? 'hung up' : 'closed'));
  });
}
