import { isIP } from 'node:net';

/**
 * Returns the network whose failures count together: an IPv4 address itself, or the /64 of an IPv6
 * address, which one client gets. Two spellings of one network give the same text.
 */
export function getNetwork(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // An IPv4 address at the end stands for two groups.
  const written = groups.length + after.length + (after.at(-1)?.includes('.') ? 1 : 0);
  if (tail !== undefined) groups.push(...Array<string>(8 - written).fill('0'), ...after);
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
