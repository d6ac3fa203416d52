import { isIP } from 'node:net';

/**
 * Returns whether a text is an IP address without a zone, or a range of them in CIDR form. PostgreSQL reads each as
 * `inet`: of IPv6 it rejects a prefix with a leading zero.
 */
export function isIpRange(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || address.includes('%')) return false;
  return prefix === undefined || (/^(0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}
