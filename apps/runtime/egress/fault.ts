import type { FailureCause } from '#domain/webhooks/causes.ts';

/** The phase of an attempt in which its connection ended. */
type Phase = 'connect' | 'tls' | 'response';

const ownCodes: Readonly<Record<string, FailureCause>> = {
  ENETUNREACH: 'network_unreachable',
  ENETDOWN: 'network_unreachable',
  EMFILE: 'sockets_exhausted',
  ENFILE: 'sockets_exhausted',
  ENOBUFS: 'sockets_exhausted',
  ENOMEM: 'sockets_exhausted',
  EADDRNOTAVAIL: 'sockets_exhausted', // no local port is free
  EACCES: 'egress_blocked',
  EPERM: 'egress_blocked',
};

const connectionCodes: Readonly<Record<string, FailureCause>> = {
  ...ownCodes,
  ECONNREFUSED: 'connection_refused',
  ETIMEDOUT: 'connection_timeout',
  // A router near the receiver sends this when its host is down. A missing local route is
  // ENETUNREACH, which a router may send too; see `postOnce`.
  EHOSTUNREACH: 'host_unreachable',
  EHOSTDOWN: 'host_unreachable',
};

const tlsCodes: Readonly<Record<string, FailureCause>> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  CERT_NOT_YET_VALID: 'tls_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_wrong_host',
  HOSTNAME_MISMATCH: 'tls_wrong_host',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_self_signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_unknown_authority',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_unknown_authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_unknown_authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_unknown_authority',
  CERT_UNTRUSTED: 'tls_unknown_authority',
  CERT_REVOKED: 'tls_certificate_unfit',
  CERT_REJECTED: 'tls_certificate_unfit',
  CERT_SIGNATURE_FAILURE: 'tls_certificate_unfit',
  INVALID_CA: 'tls_certificate_unfit',
  INVALID_PURPOSE: 'tls_certificate_unfit',
  PATH_LENGTH_EXCEEDED: 'tls_certificate_unfit',
  EE_KEY_TOO_SMALL: 'tls_certificate_unfit',
  CA_KEY_TOO_SMALL: 'tls_certificate_unfit',
  CA_MD_TOO_WEAK: 'tls_certificate_unfit',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'tls_protocol_too_old',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'tls_protocol_too_old',
  ERR_SSL_WRONG_VERSION_NUMBER: 'tls_not_spoken',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'tls_not_spoken',
  ERR_SSL_RECORD_LAYER_FAILURE: 'tls_not_spoken',
  ERR_SSL_HTTP_REQUEST: 'tls_not_spoken',
  // With TLS 1.3 the client finishes first, so this error can also arrive in place of the response.
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'tls_client_certificate',
  // Receivers with TLS 1.2 name it in different ways. The service sends no certificate, so an alert
  // about one means that it is missing.
  'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE': 'tls_client_certificate',
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN': 'tls_client_certificate',
  'ERR_SSL_SSL/TLS_ALERT_NO_CERTIFICATE': 'tls_client_certificate',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'tls_no_http1',
};

const closedCauses = { connect: 'connection_failed', tls: 'tls_closed', response: 'response_missing' } as const;

/** Returns whether a code of Node or OpenSSL is of TLS: of the handshake, or of a certificate. */
export const isTlsCode = (code: string): boolean => Object.hasOwn(tlsCodes, code) || /^ERR_(SSL|TLS|OSSL)_/.test(code);

/** Returns the cause of a connection error, by its code and never its message; null is a close. */
export function findErrorCause(error: Error | null, phase: Phase): FailureCause {
  const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
  const tlsCause = tlsCodes[code];
  if (tlsCause !== undefined) return tlsCause;
  if (phase === 'connect') return withoutIPv6(error) ? 'ipv6_only' : (connectionCodes[code] ?? 'connection_failed');
  const ownCause = ownCodes[code];
  if (ownCause !== undefined) return ownCause;
  if (code.startsWith('HPE_')) return 'response_not_http';
  return code.startsWith('ERR_SSL_') ? 'tls_failed' : closedCauses[phase];
}

/**
 * Returns the cause of a TLS handshake that failed. TLS 1.2 has one alert for a missing client
 * certificate and for ciphers that do not match. The latter is sent before the receiver's own
 * certificate, and the former after it.
 */
export function findHandshakeCause(error: Error | null, hasPeerCertificate: boolean): FailureCause {
  const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
  if (hasPeerCertificate && code.endsWith('_ALERT_HANDSHAKE_FAILURE')) return 'tls_client_certificate';
  return findErrorCause(error, 'tls');
}

/** Returns the cause when several addresses were tried: one of the receiver's says more than one of the service's. */
export function chooseCause(causes: readonly FailureCause[]): FailureCause {
  const own = new Set<FailureCause>(Object.values(ownCodes));
  return (
    causes.find((cause) => !own.has(cause) && cause !== 'ipv6_only') ??
    causes.find((cause) => cause !== 'ipv6_only') ??
    causes[0] ??
    'connection_failed'
  );
}

/**
 * Without an IPv6 route, a receiver with IPv6 only can never be reached. That counts against its
 * attempts: as an internal error, its deliveries would stay open forever.
 */
function withoutIPv6(error: Error | null): boolean {
  const { code, address } = (error ?? {}) as { code?: string; address?: string };
  return (code === 'ENETUNREACH' || code === 'EADDRNOTAVAIL') && address?.includes(':') === true;
}
