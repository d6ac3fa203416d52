/**
 * `post-child.ts plain|without-descriptors URL`: posts once and prints the outcome with the growth
 * of memory, for internal-error.test.ts.
 */
import { openSync } from 'node:fs';
import { postOnce } from '#delivery/post/post.ts';
import { addressBlocks } from '#runtime/settings/types.ts';

const [mode, url = ''] = process.argv.slice(2);
const attempt = () =>
  postOnce({
    nowMs: Date.now(),
    url,
    headers: {},
    body: Buffer.from('{}'),
    allow: addressBlocks.parse('127.0.0.0/8'),
    resolve: async () => ({ ok: false, cause: 'dns_unavailable' }),
    deadlineMs: 5_000,
  });

if (mode === 'without-descriptors') {
  try {
    for (;;) openSync('/dev/null', 'r');
  } catch {
    // EMFILE: no descriptor is left
  }
}
const highestBytes = () => process.resourceUsage().maxRSS * 1024; // needs no file descriptor
const before = highestBytes();
const result = await attempt();
const { outcome, cause } = result;
const { body } = (await result.rest) ?? result;
console.log(JSON.stringify({ outcome, cause, keptBytes: body.length, grownBytes: highestBytes() - before }));
