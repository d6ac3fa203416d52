import { BlockList } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkAddress } from '#domain/webhooks/address/addresses.ts';
import { addressBlocks } from '#runtime/settings/types.ts';

const none = new BlockList();

/** First and last address of every rejected block, and both neighbors where these are public. */
const blocks: { block: string; inside: string[]; beside: string[] }[] = [
  { block: '0.0.0.0/8', inside: ['0.0.0.0', '0.255.255.255'], beside: ['1.0.0.0'] },
  { block: '10.0.0.0/8', inside: ['10.0.0.0', '10.255.255.255'], beside: ['9.255.255.255', '11.0.0.0'] },
  { block: '100.64.0.0/10', inside: ['100.64.0.0', '100.127.255.255'], beside: ['100.63.255.255', '100.128.0.0'] },
  { block: '127.0.0.0/8', inside: ['127.0.0.0', '127.255.255.255'], beside: ['126.255.255.255', '128.0.0.0'] },
  {
    block: '169.254.0.0/16',
    inside: ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    beside: ['169.253.255.255', '169.255.0.0'],
  },
  { block: '172.16.0.0/12', inside: ['172.16.0.0', '172.31.255.255'], beside: ['172.15.255.255', '172.32.0.0'] },
  { block: '192.0.0.0/24', inside: ['192.0.0.0', '192.0.0.255'], beside: ['191.255.255.255', '192.0.1.0'] },
  { block: '192.0.2.0/24', inside: ['192.0.2.0', '192.0.2.255'], beside: ['192.0.1.255', '192.0.3.0'] },
  { block: '192.88.99.0/24', inside: ['192.88.99.0', '192.88.99.255'], beside: ['192.88.98.255', '192.88.100.0'] },
  { block: '192.168.0.0/16', inside: ['192.168.0.0', '192.168.255.255'], beside: ['192.167.255.255', '192.169.0.0'] },
  { block: '198.18.0.0/15', inside: ['198.18.0.0', '198.19.255.255'], beside: ['198.17.255.255', '198.20.0.0'] },
  { block: '198.51.100.0/24', inside: ['198.51.100.0', '198.51.100.255'], beside: ['198.51.99.255', '198.51.101.0'] },
  { block: '203.0.113.0/24', inside: ['203.0.113.0', '203.0.113.255'], beside: ['203.0.112.255', '203.0.114.0'] },
  { block: '224.0.0.0/4', inside: ['224.0.0.0', '239.255.255.255'], beside: ['223.255.255.255'] },
  { block: '240.0.0.0/4', inside: ['240.0.0.0', '255.255.255.255'], beside: [] },
  {
    block: '168.63.129.16 (Azure)',
    inside: ['168.63.129.16', '::ffff:168.63.129.16', '64:ff9b::168.63.129.16', '2606:4700::5efe:168.63.129.16'],
    beside: ['168.63.129.15', '168.63.129.17'],
  },
  { block: '161.26.0.0/16 (IBM)', inside: ['161.26.0.0', '161.26.255.255'], beside: ['161.25.255.255', '161.27.0.0'] },
  { block: '166.8.0.0/14 (IBM)', inside: ['166.8.0.0', '166.11.255.255'], beside: ['166.7.255.255', '166.12.0.0'] },
  {
    block: '199.36.153.4/30 and .8/30 (Google)',
    inside: ['199.36.153.4', '199.36.153.7', '199.36.153.8', '199.36.153.11'],
    beside: ['199.36.153.3', '199.36.153.12'],
  },
  {
    block: '2600:2d00:2:1000::/64 and :2000::/64 (Google)',
    inside: ['2600:2d00:2:1000::', '2600:2d00:2:1000:ffff::1', '2600:2d00:2:2000::1'],
    beside: ['2600:2d00:2:fff:ffff::1', '2600:2d00:2:1001::', '2600:2d00:2:2001::'],
  },
  {
    block: 'other providers’ metadata and DNS',
    inside: [
      '169.254.169.254',
      '169.254.0.23',
      '100.100.100.200',
      '100.100.2.136',
      '192.0.0.192',
      'fd00:ec2::254',
      'fd20:ce::254',
      'fd00:42::42',
      'fe80::a9fe:a9fe',
    ],
    beside: [],
  },
  { block: 'below 2000::/3', inside: ['::', '::1', '100::1', '1fff:ffff::1'], beside: ['2000::', '2000::1'] },
  {
    block: 'above 2000::/3',
    inside: ['4000::', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1', 'ff02::1'],
    beside: ['3ffe:ffff::1'],
  },
  {
    block: '2001::/23',
    inside: ['2001::', '2001:2::1', '2001:20::1', '2001:1ff:ffff::1'],
    beside: ['2000:ffff::1', '2001:200::'],
  },
  {
    block: '2001:db8::/32',
    inside: ['2001:db8::', '2001:db8:ffff:ffff::1'],
    beside: ['2001:db7:ffff::1', '2001:db9::'],
  },
  { block: '2002::/16', inside: ['2002::', '2002:808:808::1', '2002:ffff::1'], beside: ['2001:ffff::1', '2003::'] },
  { block: '3fff::/20', inside: ['3fff::', '3fff:fff:ffff::1'], beside: ['3ffe:ffff::1', '3fff:1000::'] },
  {
    block: 'mapped, by the IPv4 inside',
    inside: ['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:10.0.0.1', '::FFFF:169.254.169.254'],
    beside: ['::ffff:8.8.8.8', '::ffff:808:808'],
  },
  {
    block: 'NAT64, by the IPv4 inside',
    inside: ['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::169.254.169.254', '64:ff9b:0:0:0:1::808:808'],
    beside: ['64:ff9b::8.8.8.8'],
  },
  {
    block: 'local NAT64, by every IPv4 that may be inside',
    inside: ['64:ff9b:1::10.0.0.1', '64:ff9b:1:7f00:0:100:808:808', '64:ff9b:1:7f00::808:808', '64:ff9b:2::8.8.8.8'],
    beside: ['64:ff9b:1::8.8.8.8'],
  },
  {
    block: 'compatible and translated forms',
    inside: ['::127.0.0.1', '::8.8.8.8', '::ffff:0:8.8.8.8', '::ffff:0:127.0.0.1'],
    beside: [],
  },
  {
    block: 'ISATAP, by the IPv4 inside',
    inside: ['2606:4700::5efe:10.0.0.1', '2606:4700::200:5efe:7f00:1'],
    beside: ['2606:4700::5efe:8.8.8.8', '2606:4700::5eff:10.0.0.1'],
  },
  {
    block: 'no address',
    inside: [
      '',
      'localhost',
      '127.1',
      '0x7f.0.0.1',
      '8.8.8.8.',
      '[::1]',
      'fe80::1%eth0',
      '2606:4700::1%1',
      '8.8.8.8/32',
    ],
    beside: [],
  },
];

describe('a webhook’s address', () => {
  it.each(blocks)('in $block is rejected from end to end, and its neighbors are not', ({ inside, beside }) => {
    for (const ip of inside) expect(checkAddress(ip, none), ip).toEqual({ ok: false, cause: 'address_not_public' });
    for (const ip of beside) expect(checkAddress(ip, none), ip).toEqual({ ok: true, allowed: false });
  });

  it('is allowed where the operator allows it, in every notation, and only there', () => {
    const allowed = addressBlocks.parse('127.0.0.0/8, 10.1.2.3,fd00::/8,::1');
    for (const ip of ['127.0.0.1', '127.9.9.9', '10.1.2.3', 'fd00::7', '::1', '::ffff:127.0.0.1', '64:ff9b::10.1.2.3'])
      expect(checkAddress(ip, allowed), ip).toEqual({ ok: true, allowed: true });
    for (const ip of ['10.1.2.4', '::2', 'fe80::1', '169.254.169.254', '::ffff:10.1.2.4', 'fd00::7%lo'])
      expect(checkAddress(ip, allowed), ip).toMatchObject({ ok: false });
    expect(checkAddress('8.8.8.8', allowed)).toEqual({ ok: true, allowed: false });
  });
});

describe('WEBHOOK_ALLOW', () => {
  it('allows nothing when it is absent or empty', () => {
    expect(addressBlocks.parse(undefined).rules).toEqual([]);
    expect(addressBlocks.parse('').rules).toEqual([]);
  });

  it.each([
    '127.0.0.1/',
    '127.0.0.1/33',
    '::1/129',
    '127.1',
    'localhost',
    '10.0.0.0/8 ::1',
    '10.0.0.0/-1',
    '*',
    '127.0.0.1/8/8',
    '1e1.0.0.0',
  ])('rejects %j, so that a mistake never allows more than intended', (text) => {
    expect(addressBlocks.safeParse(text).success).toBe(false);
  });
});
