import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP } from 'node:net';

/**
 * Returns the address that a request came from: the connection's own, unless that is a trusted
 * proxy; then the nearest in `X-Forwarded-For` that is none. Entries further left are the client's
 * own claim. Null when unknown.
 */
export function clientAddress(request: IncomingMessage, trustedProxies: BlockList): string | null {
  let address = plain(request.socket.remoteAddress);
  const forwarded = request.headers['x-forwarded-for'];
  if (forwarded === undefined || address === null || !isTrusted(address, trustedProxies)) return address;
  const hops = (Array.isArray(forwarded) ? forwarded.join(',') : forwarded).split(',');
  for (const hop of hops.reverse()) {
    const next = plain(hop.trim());
    if (next === null) return address;
    address = next;
    if (!isTrusted(address, trustedProxies)) return address;
  }
  return address;
}

/** Returns whether a socket's peer is a trusted proxy. */
export function isTrustedPeer(remoteAddress: string | undefined, trustedProxies: BlockList): boolean {
  const address = plain(remoteAddress);
  return address !== null && isTrusted(address, trustedProxies);
}

function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return trustedProxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * An entry with the port that some load balancers add: `203.0.113.9:4711`, `[2001:db8::7]:4711`,
 * `[2001:db8::7]`.
 */
const withPort = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;

/**
 * Returns the address of an entry without its port, its zone, and the IPv6 mapping that a
 * dual-stack socket adds to IPv4; null when it is no address.
 *
 * No library was suitable: `proxy-addr` does not accept an entry with a port, Koa's `proxy` trusts
 * the leftmost entry, and Node's `SocketAddress.parse` accepts short forms such as `127.1`.
 */
function plain(entry: string | undefined): string | null {
  if (entry === undefined) return null;
  const [, bracketed, numbers] = withPort.exec(entry) ?? [];
  const [text = ''] = (bracketed ?? numbers ?? entry).split('%');
  if (bracketed !== undefined && isIP(text) !== 6) return null;
  const mapped = /^::ffff:(?=[\d.]*$)/i.exec(text);
  const address = mapped === null ? text : text.slice(mapped[0].length);
  return isIP(address) === 0 ? null : address;
}

/** Returns the token of an Authorization header of the scheme Bearer (RFC 6750, 2.1), or null. */
export function findBearer(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length < 8) return null;
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  return authorization.slice(7).trim() || null;
}
