import { once } from 'node:events';
import { connect, constants, createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { makeCertificate, type TestCertificate } from './certificates.ts';
import { mountSecret } from './mounted-secret.ts';

/**
 * A proxy with the requirements of a production Temporal: TLS, a client certificate, and an API
 * key.
 */
export interface TemporalFront {
  /** `host:port`. */
  address: string;
  /** Certificate (PEM) of the authority that issued the server's certificate. */
  ca: string;
  /** That authority at the start, which also issued `client`. */
  authority: TestCertificate;
  /** A client certificate that the proxy accepts. */
  client: TestCertificate;
  /**
   * Replaces the server's certificate by one of an authority, lets in clients of these authorities
   * only, and ends every connection.
   */
  useAuthorities(issuer: TestCertificate, ofClients: readonly TestCertificate[]): void;
  /** Sets the accepted keys; null requires none. */
  letIn(apiKeys: readonly string[] | null): void;
  /** Rejects a call, such as `StartWorkflowExecution`, with a code of gRPC. */
  reject(call: string, code: number): void;
  /** Protocols negotiated with clients, each once: for gRPC it is `h2`. */
  protocols: Set<string>;
  /** API keys of the calls. */
  apiKeys: Set<string>;
  /** The calls in their order, such as `StartWorkflowExecution`. */
  calls: string[];
}

/** Returns the settings of a client with all required credentials, as files. */
export function mountSettings(front: TemporalFront) {
  const mounted = mountSecret({
    TEMPORAL_TLS_CA: front.ca,
    TEMPORAL_TLS_CERT: front.client.cert,
    TEMPORAL_TLS_KEY: front.client.key,
  });
  return {
    TEMPORAL_ADDRESS: front.address,
    TEMPORAL_TLS: 'true',
    TEMPORAL_TLS_SERVER_NAME: frontName,
    ...mounted.settings,
  };
}

/** The name in its certificate. It listens on 127.0.0.1, which the certificate does not name. */
export const frontName = 'temporal.example.com';

/**
 * Starts a proxy to a Temporal without TLS. It terminates TLS, requires a separate certificate
 * authority, and forwards each gRPC call, like a frontend with mutual TLS or Temporal Cloud. It
 * stops when the test ends.
 */
export async function startTemporalFront(
  targetAddress: string,
  onFinished: (end: () => void) => void = onTestFinished,
): Promise<TemporalFront> {
  const authority = makeCertificate({ subject: 'Authority of the front', isAuthority: true });
  const createContext = (issuer: TestCertificate, ofClients: readonly TestCertificate[]) => {
    const { cert, key } = makeCertificate({ subject: 'The front', names: [frontName], issuer });
    return { cert, key, ca: ofClients.map((one) => one.cert) };
  };
  let apiKeys: readonly string[] | null = null;
  const rejected = new Map<string, number>();
  const protocols = new Set<string>();
  const seen = new Set<string>();
  const calls: string[] = [];
  const upstream = connect(`http://${targetAddress}`);
  upstream.on('error', () => {});
  const server = createSecureServer({
    ...createContext(authority, [authority]),
    requestCert: true,
    rejectUnauthorized: true,
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    protocols.add(session.alpnProtocol ?? 'none');
    session.on('error', () => {}).on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const [, apiKey = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    seen.add(apiKey);
    const call = String(headers[':path']).replace(/.*\//, '');
    calls.push(call);
    const code = apiKeys === null || apiKeys.includes(apiKey) ? rejected.get(call) : 16;
    if (code === undefined) forward(upstream, stream, headers);
    else
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': code }, { endStream: true });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onFinished(() => {
    for (const session of sessions) session.destroy();
    upstream.destroy();
    server.close();
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: authority.cert,
    authority,
    client: makeCertificate({ subject: 'A client', issuer: authority }),
    useAuthorities(issuer, ofClients) {
      server.setSecureContext(createContext(issuer, ofClients));
      for (const session of sessions) session.destroy();
    },
    letIn(keys) {
      apiKeys = keys;
    },
    reject: (call, code) => void rejected.set(call, code),
    protocols,
    apiKeys: seen,
    calls,
  };
}

/** Forwards one call: its messages, and its trailers. */
function forward(upstream: ReturnType<typeof connect>, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const { ':scheme': _scheme, ':authority': _authority, authorization: _authorization, ...rest } = headers;
  const call = upstream.request(rest);
  let trailers: IncomingHttpHeaders = {};
  const cancel = (other: { close(code: number): void }) => () => other.close(constants.NGHTTP2_CANCEL);
  call.on('response', (response, flags) => {
    const isAll = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (stream.destroyed) return;
    stream.respond(response, isAll ? { endStream: true } : { waitForTrailers: true });
    if (!isAll) call.pipe(stream);
  });
  call.on('trailers', (received) => {
    trailers = received;
  });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.on('error', () => {}).on('aborted', cancel(call));
  call.on('error', cancel(stream));
  stream.pipe(call);
}
