import { describe, expect, it } from 'vitest';
import { postOnce } from '#delivery/post/post.ts';
import { hasRoute } from '#delivery/post/route.ts';
import { addressBlocks } from '#runtime/settings/types.ts';

/**
 * The kernel connects to no broadcast address: UDP is rejected at once (EACCES), TCP with the
 * ENETUNREACH of a network without a route.
 */
const broadcast = '127.255.255.255';

describe('the lookup of a route', () => {
  it('finds one in the routing table for an address that has one', async () => {
    expect(await hasRoute(['127.0.0.1'])).toBe(true);
  });

  it('finds none only when none of the addresses has one', async () => {
    expect(await hasRoute([broadcast])).toBe(false);
    expect(await hasRoute([broadcast, '127.0.0.1'])).toBe(true);
  });
});

// What a distant router reports is a failure of the receiver and counts in the schedule; only a
// worker without a route has an internal error.
describe('a post to a network without a route', () => {
  const post = (isRouted: boolean) =>
    postOnce({
      nowMs: Date.now(),
      url: `http://${broadcast}:9/`,
      headers: {},
      body: Buffer.from('{}'),
      allow: addressBlocks.parse('127.0.0.0/8'),
      resolve: async () => ({ ok: false, cause: 'dns_unavailable' }),
      hasRoute: async () => isRouted,
    });

  it('is the receiver’s failure when this machine has a route to others', async () => {
    expect(await post(true)).toMatchObject({ outcome: 'failed', cause: 'host_unreachable' });
  });

  it('is an internal error when this machine has no route to any other', async () => {
    expect(await post(false)).toMatchObject({ outcome: 'internal_error', cause: 'network_unreachable' });
  });
});
