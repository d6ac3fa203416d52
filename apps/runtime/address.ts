import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP } from 'node:net';

/**
 * The address a request came from: the connection's own, unless that is a trusted proxy; then the nearest address in
 * `X-Forwarded-For` that is not one. What stands further left is the client's own claim and never believed. Null when unknown.
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

function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return trustedProxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** Without the IPv6 mapping that a dual-stack socket adds to IPv4, and without a zone; null for anything but an address. */
function plain(address: string | undefined): string | null {
  if (address === undefined) return null;
  const text =
    address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : (address.split('%')[0] ?? '');
  return isIP(text) === 0 ? null : text;
}
