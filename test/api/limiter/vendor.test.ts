/** A vendor that serves 200 organizations from one address: a key of each. */
import { describe, expect, it } from 'vitest';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import type { MadeKey } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup, shareInstallation } from '#test/setup.ts';

const organizations = 200;

/** What a vendor stores: the organization's id beside its key. */
type Pair = Pick<MadeKey, 'orgId' | 'key' | 'id'>;

/** The keys of 200 organizations, and their reads of one address. */
async function setupVendor(onFinished: Parameters<typeof setup>[1]) {
  const installation = await setup({}, onFinished);
  const { api, make } = installation;
  const pairs: Pair[] = [];
  for (let n = 0; n < organizations; n += 1) pairs.push(await make.apiKey());
  const read = async ({ orgId, key }: Pick<Pair, 'orgId' | 'key'>) => {
    const response = await api.get(`/v1/orgs/${orgId}`, { key });
    const body = (await response.json()) as { id?: string; error?: string };
    const { headers, status } = response;
    const left = /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1];
    return { status, found: body.id ?? body.error, left: Number(left), expires: headers.get('key-expires') };
  };
  const readMetric = async (name: string) => {
    const text = await (await fetch(`${api.metricsUrl}/metrics`)).text();
    return [...text.matchAll(new RegExp(`^${name}\\b(.*) (\\S+)$`, 'gm'))].map(([, labels = '', value]) => ({
      labels,
      value: Number(value),
    }));
  };
  return { ...installation, pairs, read, readMetric };
}

describe('a vendor with a key of each of 200 organizations', () => {
  const vendor = shareInstallation(setupVendor);

  it('gets every read at once, of the organization of the key, and each key has a window of its own', async () => {
    const { pairs, read, readMetric } = vendor();
    const responses = await Promise.all(pairs.map(read));
    expect(responses).toEqual(
      pairs.map(({ orgId }) => ({ status: 200, found: orgId, left: requestsPerWindow - 1, expires: null })),
    );
    // Statements are shared across keys, and none has more than 32 reads.
    const buckets = await readMetric('org_api_reads_per_statement_bucket');
    const all = buckets.find(({ labels }) => labels.includes('+Inf'))?.value ?? 0;
    const upTo32 = buckets.find(({ labels }) => labels.includes('le="32"'))?.value;
    expect(upTo32).toBe(all);
    expect(all).toBeLessThan(organizations);
  });

  it('has one key above its limit, and no other key is limited by it', async () => {
    const { pairs, read } = vendor();
    const [busy, ...others] = pairs as [Pair, ...Pair[]];
    const spent = await Promise.all(Array.from({ length: requestsPerWindow }, () => read(busy)));
    expect(new Set(spent.map(({ status }) => status))).toEqual(new Set([200, 429]));
    const responses = await Promise.all(others.map(read));
    expect(responses.map(({ status }) => status)).toEqual(others.map(() => 200));
    expect((await read(busy)).status).toBe(429);
  });

  it('finds a key that is stored with another organization, and nothing of that organization', async () => {
    const { pairs, read } = vendor();
    const swapped = pairs.slice(1).map(({ key }, n) => ({ key, orgId: pairs[n]?.orgId as string }));
    const responses = await Promise.all(swapped.slice(1).map(read));
    expect(new Set(responses.map(({ status, found }) => `${status} ${found}`))).toEqual(new Set(['403 forbidden']));
  });

  it('rotates every key with an overlap while it reads, and no read fails', async () => {
    const { owner, pairs, read } = vendor();
    const stored = pairs.slice(1);
    const overlapSeconds = 3_600;
    let isRotating = true;
    const statuses: number[] = [];
    /** Reads each organization in turn with the key that is stored at that moment. */
    const readAll = async (first: number) => {
      for (let n = first; isRotating || n < first + stored.length; n += 4) {
        statuses.push((await read(stored[n % stored.length] as Pair)).status);
        if (n > first + 20 * stored.length) break; // below the limit of each key
      }
    };
    const readers = [0, 1, 2, 3].map(readAll);
    const predecessors = [...stored];
    for (const [n, { id, orgId }] of predecessors.entries()) {
      const rotation = { organizationId: orgId, keyId: id, by: 'orgctl', overlapSeconds, expiresAt: null } as const;
      const successor = await rotateKey(owner, rotation, testKeySecrets);
      stored[n] = { orgId, key: successor.key, id: successor.id };
    }
    isRotating = false;
    await Promise.all(readers);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(statuses.length).toBeGreaterThanOrEqual(stored.length);
    // Both keys work, and the old one says when it ends.
    const [after, before] = [await Promise.all(stored.map(read)), await Promise.all(predecessors.map(read))];
    expect(after.map(({ status, expires }) => [status, expires])).toEqual(stored.map(() => [200, null]));
    expect(before.filter(({ status, expires }) => status === 200 && expires !== null)).toHaveLength(stored.length);
    expect(new Set(after.map(({ found }) => found)).size).toBe(stored.length);
  });
});
