/** Networks whose failures count together. */
import { expect, it } from 'vitest';
import { getNetwork } from '#domain/identity/network.ts';

it.each([
  ['203.0.113.9', '203.0.113.9'],
  ['2001:db8::7', '2001:db8:0:0'],
  ['2001:0DB8:0:0:ffff::1', '2001:db8:0:0'],
  ['1::4:5:6:7:8', '1:0:0:4'],
  ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
  ['::', '0:0:0:0'],
])('the network of %s is %s in every notation', (address, network) => {
  expect(getNetwork(address)).toBe(network);
});
