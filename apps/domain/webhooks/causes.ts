import { type UrlProblem, urlProblems } from './address/url-problems.ts';

/**
 * How an attempt ended. `failed`: anything but a 2xx status line in time, also a URL that is not
 * allowed. `internal_error`: the service could not send, which does not count against the receiver.
 */
export type AttemptOutcome = 'delivered' | 'failed' | 'internal_error';

/** What a cause alone determines. `explanation`: what happened and, after a colon, what to do. */
interface CauseProperties {
  outcome: AttemptOutcome;
  explanation: string;
}

const failed = (explanation: string): CauseProperties => ({ outcome: 'failed', explanation });
const internal = (what: string): CauseProperties => ({
  outcome: 'internal_error',
  explanation: `${what} This is an internal error of the service: the attempt does not count and is made again.`,
});

const failures = {
  internal_error: internal('The service could not prepare the request, and nothing was sent.'),
  dns_no_such_name: failed('DNS knows no such host: correct the URL, or publish an A or AAAA record for the name.'),
  dns_no_address: failed('DNS has no address for the host: publish an A or AAAA record for the name.'),
  dns_failed: failed('The name servers of the host answered with an error: check the zone and its delegation.'),
  dns_timeout: failed('The name servers of the host did not answer in time: check that all of them are up.'),
  dns_unavailable: internal('The service’s DNS resolver could not be used.'),

  connection_refused: failed(
    'The receiver refused the connection: start it, and check the port and the firewall in front of it.',
  ),
  connection_timeout: failed(
    'No connection was established in time: check that the receiver is up and that its firewall admits the service.',
  ),
  host_unreachable: failed(
    'The network reported that the receiver cannot be reached: check that its host is up and its address is right.',
  ),
  ipv6_only: failed(
    'The host has IPv6 addresses only, and the service has no IPv6 route: publish an A record as well.',
  ),
  connection_failed: failed('The connection failed: check the receiver and its proxies.'),
  network_unreachable: internal('The service’s network had no route to the internet.'),
  sockets_exhausted: internal('The service could not open another connection.'),
  egress_blocked: internal('The service’s firewall blocked the connection.'),

  tls_timeout: failed('The TLS handshake did not end in time: check the load on the receiver or its proxy.'),
  tls_closed: failed(
    'The connection was closed during the TLS handshake: check that the port speaks TLS and knows this host name.',
  ),
  tls_expired: failed('The certificate has expired: renew it and reload the server.'),
  tls_not_yet_valid: failed(
    'The certificate is not valid yet: check its dates and the clock of the machine that issued it.',
  ),
  clock_wrong: internal('The service’s clock was wrong, so the dates of the certificate could not be checked.'),
  tls_wrong_host: failed(
    'The certificate does not name the host of the URL: serve one whose subject names include it.',
  ),
  tls_self_signed: failed('The certificate is self-signed: use one of a public certificate authority.'),
  tls_unknown_authority: failed(
    'The certificate’s authority is unknown or its chain is incomplete: use a public authority ' +
      'and serve all intermediate certificates.',
  ),
  tls_certificate_unfit: failed(
    'The certificate cannot be accepted (revoked, too weak, or issued for another purpose): replace it.',
  ),
  tls_protocol_too_old: failed('The receiver does not offer TLS 1.2 or newer: enable TLS 1.2 and 1.3.'),
  tls_not_spoken: failed('The port does not speak TLS: use the https port of the receiver.'),
  tls_client_certificate: failed(
    'The receiver asks for a client certificate, which the service does not have: turn that off for this ' +
      'path and check the signature instead.',
  ),
  tls_no_http1: failed('The receiver speaks HTTP/2 only: let it offer HTTP/1.1 as well.'),
  tls_failed: failed('The TLS handshake failed: check the receiver’s protocol versions, ciphers and certificate.'),

  response_timeout: failed(
    'No status line arrived in time: answer 2xx as soon as the event is stored, and do the work afterwards.',
  ),
  response_missing: failed(
    'The connection was closed before a status line arrived: see the receiver’s log for a crash.',
  ),
  response_not_http: failed(
    'The response does not begin with a status line such as “HTTP/1.1 200 OK”: check which server listens here.',
  ),

  answered_redirect: failed('The receiver answered with a redirect, which is not followed: register the final URL.'),
  answered_unauthorized: failed(
    'The receiver rejected the request as unauthorized: give it this webhook’s signing secret, and ' +
      'accept posts to this path without other credentials.',
  ),
  answered_not_found: failed('The receiver has nothing at this path (404): correct the URL or the route.'),
  answered_gone: failed(
    'The receiver wants no more events at this URL (410), which suspends the webhook: correct the URL or the ' +
      'receiver, then resume the webhook.',
  ),
  answered_method_not_allowed: failed(
    'The receiver does not take POST at this path (405): correct the URL or the route.',
  ),
  answered_too_large: failed('The event is too large for the receiver (413): raise its limit for bodies.'),
  answered_too_many: failed('The receiver limits the rate (429): raise its limit, or answer with Retry-After.'),
  answered_client_error: failed(
    'The receiver rejected the event (4xx): see the response and the receiver’s log, and ' +
      'answer 2xx once it is stored.',
  ),
  answered_unavailable: failed('The receiver is not available (503): start it or give it more capacity.'),
  answered_server_error: failed('The receiver failed (5xx): see its log for the error.'),
  answered_other: failed('The receiver answered with a status that is not a final response to a POST: answer 2xx.'),
} satisfies Record<string, CauseProperties>;

/** Stable codes of what decided an attempt. They are stored and never renamed. */
export type Cause = 'accepted' | UrlProblem | FailureCause;

/** The codes of attempts that were made and not accepted. */
export type FailureCause = keyof typeof failures;

/** Returns what a cause alone determines. */
export function getCauseProperties(cause: Cause): CauseProperties {
  if (cause === 'accepted') return { outcome: 'delivered', explanation: 'The receiver accepted the event.' };
  if (cause in urlProblems) return failed(urlProblems[cause as UrlProblem]);
  return failures[cause as FailureCause];
}

/** All codes, for the documentation's tables and for tests. */
export const causes = ['accepted', ...Object.keys(urlProblems), ...Object.keys(failures)] as readonly Cause[];

const causesOfStatus: Readonly<Record<number, FailureCause>> = {
  401: 'answered_unauthorized',
  403: 'answered_unauthorized',
  407: 'answered_unauthorized',
  404: 'answered_not_found',
  405: 'answered_method_not_allowed',
  410: 'answered_gone',
  413: 'answered_too_large',
  429: 'answered_too_many',
  503: 'answered_unavailable',
};

/** Returns the cause that a status line determines. */
export function findStatusCause(status: number): Cause {
  const hundreds = Math.floor(status / 100);
  if (hundreds === 2) return 'accepted';
  if (hundreds === 3) return 'answered_redirect';
  if (hundreds === 4) return causesOfStatus[status] ?? 'answered_client_error';
  if (hundreds === 5) return causesOfStatus[status] ?? 'answered_server_error';
  return 'answered_other';
}

/**
 * Returns the cause of a stored attempt in words for people: its explanation without the remedy.
 * Codes are for programs.
 */
export function describeCause(cause: string | null): string {
  if (cause === 'lost') return 'The outcome was not recorded';
  const known = causes.find((each): each is Cause => each === cause);
  return known === undefined ? 'Unknown cause' : (getCauseProperties(known).explanation.split(/[:.] |\.$/)[0] ?? '');
}
