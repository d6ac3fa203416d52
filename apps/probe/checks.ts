import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { regionCodes, regions } from '#domain/contract/regions.ts';
import { generateKey } from '#domain/keys/format.ts';
import { verifyDelivery } from '#domain/webhooks/verify.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import type { ProbeConfig } from './config.ts';

/**
 * The result of a check, with a message that contains no key and no secret.
 */
export interface Finding {
  ok: boolean;
  message: string;
}

/** A request that the probe's receiver got. */
export interface Post {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const timeoutMs = 10_000;

/** Checks that the probe's key reads its organization. */
export async function checkRead(config: ProbeConfig): Promise<Finding> {
  const answer = await read(config, config.key);
  const id = answer.status === 200 ? ((await answer.json()) as { id?: unknown }).id : null;
  const ok = id === config.organizationId;
  return {
    ok,
    message: ok
      ? 'a read with the probe’s key answers 200'
      : `a read with the probe’s key answers ${answer.status} and not the probe’s organization`,
  };
}

/**
 * Checks that a key of the other region is refused with the name of its region. The key is
 * invented.
 */
export async function checkWrongRegion(config: ProbeConfig): Promise<Finding> {
  const other = regionCodes.find((code) => code !== config.region) ?? 'ca';
  const answer = await read(config, generateKey(other, randomBytes(32)));
  const { error, message: text = '' } = (await answer.json()) as { error?: string; message?: string };
  const ok = answer.status === 401 && error === 'invalid_api_key' && text.includes(regions[other].name);
  return {
    ok,
    message: ok
      ? `a key of ${regions[other].name} is refused with 401, with its region`
      : `a key of ${regions[other].name} gets ${answer.status} ${error ?? ''}`,
  };
}

/** Checks that a test event goes through Temporal and a worker, arrives here once, and verifies. */
export async function checkDelivery(
  config: ProbeConfig,
  sendTest: () => Promise<TestResult | null>,
  posts: readonly Post[],
): Promise<Finding[]> {
  const result = await sendTest();
  if (result === null)
    return [
      { ok: false, message: 'the probe’s webhook is deleted: create it again with orgctl probe create --renew yes' },
    ];
  const delivered = {
    ok: result.delivered,
    message: result.delivered
      ? `a worker delivered a test event in ${Math.round(result.durationMs)} ms`
      : `the test event was not delivered (${result.cause}): ${result.explanation}`,
  };
  const own = posts.filter(({ headers }) => headers['webhook-id'] === result.eventId);
  const [post] = own;
  if (post === undefined) return [delivered, { ok: false, message: 'the test event did not arrive at this receiver' }];
  const failed = verifyDelivery({ ...post, secrets: [config.webhookSecret] }).checks.filter(({ ok }) => !ok);
  const verified = {
    ok: failed.length === 0,
    message:
      failed.length === 0 ? 'both of its signatures verify' : `its ${failed.map(({ name }) => name).join(', ')} failed`,
  };
  const arrived = own.length === 1 ? 'it arrived once' : `it arrived ${own.length} times, and should arrive once`;
  return [delivered, { ok: own.length === 1, message: arrived }, verified];
}

function read({ api, organizationId }: ProbeConfig, key: string): Promise<Response> {
  return fetch(`${api}/v1/orgs/${organizationId}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(timeoutMs),
  });
}
