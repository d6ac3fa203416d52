import { Connection, isGrpcServiceError } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';

/**
 * Returns the options of both kinds of connection: the worker's native one and the client's. The
 * client would send calls to the proxy that `http_proxy` or `https_proxy` names; the native one reads
 * no variable.
 */
export function connectionOptions({ address, tls = null, apiKey = null }: TemporalServer) {
  return {
    address,
    // A client that found no server tries again after 1 s to 5 s; by default the time grows to two minutes.
    channelArgs: { 'grpc.enable_http_proxy': 0, 'grpc.max_reconnect_backoff_ms': 5_000 },
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

/**
 * Returns the gRPC code of a failed call, or null for another error. The SDK's client wraps the error of gRPC;
 * `workflowService` and the native connection throw it itself, in a class that looks like the wrapper's.
 */
export function findGrpcCode(error: unknown): number | null {
  if (isGrpcServiceError(error)) return error.code;
  return error instanceof Error && isGrpcServiceError(error.cause) ? error.cause.code : null;
}

/** gRPC codes by which a server rejects this app. */
const grpcRejections: readonly unknown[] = [7 /* PERMISSION_DENIED */, 16 /* UNAUTHENTICATED */];

/** Returns whether a call failed because the server rejects this app. */
export const isRejection = (error: unknown): boolean => grpcRejections.includes(findGrpcCode(error));

/** gRPC codes of a server that was not reached, or is overloaded: they do not concern the call. */
const unavailableCodes: readonly unknown[] = [
  1 /* CANCELLED */, 4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */, 14 /* UNAVAILABLE */,
];

/** Returns whether a call failed because Temporal does not answer, not because of its content. */
export const isUnavailable = (error: unknown): boolean =>
  unavailableCodes.includes(findGrpcCode(error)) || isRejection(error);

/** gRPC codes of a call that got no answer before its deadline. */
const grpcUnanswered: readonly unknown[] = [1 /* CANCELLED */, 4 /* DEADLINE_EXCEEDED */];

/** Returns whether a call missed its deadline. */
export const isUnanswered = (error: unknown): boolean => grpcUnanswered.includes(findGrpcCode(error));

/** Returns whether the server has no such namespace or workflow. */
export const isNotFound = (error: unknown): boolean => findGrpcCode(error) === 5; // NOT_FOUND

/** Describes a rejection and its remedy, in a sentence without its period. */
export const describeRejection = ({ address, namespace, apiKey }: TemporalServer): string =>
  `Temporal at ${address} does not let this app into the namespace ${namespace}: ${
    apiKey
      ? 'see that TEMPORAL_API_KEY is valid and may use it'
      : 'it may want TEMPORAL_API_KEY, or another certificate'
  }`;

/**
 * Describes a server that could not be connected to, without a period. The SDK reports a failed
 * handshake without a code, so it does not say which TLS setting is wrong.
 */
export const describeUnavailable = ({ address, tls = null }: TemporalServer): string =>
  `Temporal does not answer at ${address}${tls === null ? '' : ' with these TEMPORAL_TLS settings'}`;

/** Returns why a server cannot be connected to, as the end of a sentence, or null. */
export async function tryTemporal(server: TemporalServer): Promise<string | null> {
  const connection = Connection.lazy({ ...connectionOptions(server), connectTimeout: rejectionTimeoutMs });
  const { namespace } = server;
  try {
    await connection.withDeadline(Date.now() + rejectionTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return null;
  } catch (error) {
    return `cannot be used to connect to Temporal (${isRejection(error) ? 'rejected' : 'no response'})`;
  } finally {
    await connection.close();
  }
}

const rejectionTimeoutMs = 2_000;

/** Returns whether a server rejects the API key or the certificate. */
export async function rejects(server: TemporalServer): Promise<boolean> {
  const connection = Connection.lazy({ ...connectionOptions(server), connectTimeout: rejectionTimeoutMs });
  try {
    await connection.ensureConnected();
    return false;
  } catch (error) {
    return isRejection(error);
  } finally {
    await connection.close();
  }
}
