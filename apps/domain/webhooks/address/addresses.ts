import { BlockList, isIP, isIPv4 } from 'node:net';

/** Non-public addresses that the installation's operator allows for webhooks (`WEBHOOK_ALLOW`). */
export type AllowList = BlockList;

/** `allowed`: the operator named the address, so plain http to it is permitted too. */
type AddressCheck = { ok: true; allowed: boolean } | { ok: false; cause: 'address_not_public' };

type Block = [network: string, bits: number];

/**
 * Public addresses at which a cloud provider serves the machines of its own network: metadata, DNS,
 * agents and private entrances to its APIs. Those of other providers are in blocks below: AWS,
 * Google, Oracle and others 169.254.0.0/16, Alibaba 100.100.0.0/16, Oracle's older service
 * 192.0.0.192, AWS fd00:ec2::/32, OpenStack and others fe80::a9fe:a9fe.
 */
const providers4: Block[] = [
  // learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
  ['168.63.129.16', 32],
  // cloud.ibm.com/docs/vpc, "Service endpoints": DNS, time, mirrors, private APIs
  ['161.26.0.0', 16],
  ['166.8.0.0', 14],
  // cloud.google.com/vpc/docs/configure-private-google-access: restricted.googleapis.com, private.…
  ['199.36.153.4', 30],
  ['199.36.153.8', 30],
];
const providers6: Block[] = [
  // The same page: restricted.googleapis.com, private.googleapis.com
  ['2600:2d00:2:1000::', 64],
  ['2600:2d00:2:2000::', 64],
];

const notPublicIPv4 = blocks('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ...providers4,
]);
const globalUnicast = blocks('ipv6', [['2000::', 3]]);
const notPublicIPv6 = blocks('ipv6', [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
  ...providers6,
]);

/**
 * Checks whether a webhook may reach an address, written as IPv4 or IPv6 text. Pure.
 *
 * A text that is not an address, or that names a zone, is rejected.
 */
export function checkAddress(ip: string, allowed: AllowList): AddressCheck {
  const family = ip.includes('%') ? 0 : isIP(ip);
  if (family === 0) return { ok: false, cause: 'address_not_public' };
  if (allowed.check(ip, family === 4 ? 'ipv4' : 'ipv6')) return { ok: true, allowed: true };
  if (family === 4) return notPublicIPv4.check(ip, 'ipv4') ? notPublic() : { ok: true, allowed: false };

  const bytes = bytesOfIPv6(ip);
  const inside = ipv4Inside(bytes);
  if (inside !== null) return checkAddress(inside, allowed);
  const isPublic = globalUnicast.check(ip, 'ipv6') && !notPublicIPv6.check(ip, 'ipv6');
  return isPublic && !isTunnelToPrivate(bytes) ? { ok: true, allowed: false } : notPublic();
}

function notPublic(): AddressCheck {
  return { ok: false, cause: 'address_not_public' };
}

const mappedPrefix = '00000000000000000000ffff';
const nat64Prefix = '0064ff9b0000000000000000';
/**
 * The first 96 bits of the local-use prefix 64:ff9b:1::/48. A translator there may put the IPv4
 * address at four positions (RFC 6052), so that one address could mean a public host here and a
 * private one there. With these bits the other three positions read 0.0.0.x, which no translator
 * forwards; the rest of the /48 is rejected.
 */
const localNat64Prefix = '0064ff9b0001000000000000';

/** Returns the IPv4 address in a mapped or NAT64 address, else null. */
function ipv4Inside(bytes: readonly number[]): string | null {
  const prefix = Buffer.from(bytes.slice(0, 12)).toString('hex');
  const stands = prefix === mappedPrefix || prefix === nat64Prefix || prefix === localNat64Prefix;
  return stands ? bytes.slice(12).join('.') : null;
}

/** ISATAP (RFC 5214): the interface id `0[2]00:5efe:<IPv4>` is the end of the tunnel. */
function isTunnelToPrivate(bytes: readonly number[]): boolean {
  const interfaceId = Buffer.from(bytes.slice(8, 12)).toString('hex');
  if (interfaceId !== '00005efe' && interfaceId !== '02005efe') return false;
  return notPublicIPv4.check(bytes.slice(12).join('.'), 'ipv4');
}

/** Returns the 16 bytes of an IPv6 address that `isIP` has accepted. */
function bytesOfIPv6(ip: string): number[] {
  const [front = '', back] = ip.split('::');
  const head = parseGroups(front);
  const tail = back === undefined ? [] : parseGroups(back);
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

function parseGroups(text: string): number[] {
  const groups = text.split(':').filter((group) => group !== '');
  return groups.flatMap((group) => {
    if (isIPv4(group)) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function blocks(family: 'ipv4' | 'ipv6', list: readonly Block[]): BlockList {
  const result = new BlockList();
  for (const [network, bits] of list) result.addSubnet(network, bits, family);
  return result;
}
