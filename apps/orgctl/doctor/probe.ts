import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { regionCodes, regions } from '#domain/contract/regions.ts';
import { generateKey } from '#domain/keys/key.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { openWorkflowClient } from '#workflows/client.ts';
import { WorkflowError } from '#workflows/errors.ts';
import type { ProbeConfig } from './config.ts';
import { createFindings, type Finding } from './finding.ts';

const { ok, failed, expectThat } = createFindings('probe');

/** A request that the probe's receiver got. */
interface Post {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const timeoutMs = 10_000;
/** A Service routes to a pod a moment after the pod is ready, and the pod is not notified. */
const serviceDelayMs = 5_000;
const workerRemedy = 'See the logs of the workers, and that a network policy lets them reach this receiver.';
const temporalRemedy = 'See what the check of Temporal says. A server that accepts connections can lack a service.';
const getRemedy = ({ reason }: WorkflowError) => (reason === 'temporal_unavailable' ? temporalRemedy : workerRemedy);

/**
 * Reads with the probe's key, sees that a key of the other region is rejected, and receives a
 * signed test event on a separate port. It uses only the operator's organization
 * (`orgctl probe create`).
 */
export async function checkProbe(config: ProbeConfig, temporal: TemporalServer | null): Promise<Finding[]> {
  const reads = await Promise.all(
    [checkRead(config), checkWrongRegion(config)].map((check) => check.catch(noResponse)),
  );
  if (temporal === null) return reads;
  const { posts, stop } = await startReceiver(config);
  try {
    return [...reads, ...(await checkDelivery(config, temporal, posts))];
  } finally {
    stop();
  }
}

const noResponse = () => failed('the API does not answer at API_URL', 'See whether its pods are ready.');

/** Checks that the probe's key reads its organization. */
async function checkRead(config: ProbeConfig): Promise<Finding> {
  const response = await read(config, config.key);
  const id = response.status === 200 ? ((await response.json()) as { id?: unknown }).id : null;
  return expectThat(
    id === config.organizationId,
    'a read with the probe’s key answers 200',
    `a read with the probe’s key answers ${response.status} and not the probe’s organization`,
    'Run orgctl probe create --renew yes, and apply its Secret.',
  );
}

/** Checks that a key of the other region is rejected with the name of its region. The key is invented. */
async function checkWrongRegion(config: ProbeConfig): Promise<Finding> {
  const other = regionCodes.find((code) => code !== config.region) ?? 'ca';
  const response = await read(config, generateKey(other, randomBytes(32)));
  const { error, message = '' } = (await response.json()) as { error?: string; message?: string };
  const { name } = regions[other];
  return expectThat(
    response.status === 401 && error === 'invalid_api_key' && message.includes(name),
    `a key of ${name} is rejected with 401, with its region`,
    `a key of ${name} gets ${response.status} ${error ?? ''}`,
    'See that REGION is the same for the API and this command.',
  );
}

/** Checks that a test event goes through Temporal and a worker, arrives here once, and verifies. */
async function checkDelivery(
  { organizationId, webhookId, webhookSecret }: ProbeConfig,
  temporal: TemporalServer,
  posts: readonly Post[],
): Promise<Finding[]> {
  await wait(serviceDelayMs);
  const client = await openWorkflowClient(temporal).catch(rejectedOnly);
  if (client instanceof WorkflowError) return [failed(client.message, getRemedy(client))];
  const result = await client
    .sendTest({ organizationId, webhookId, eventType: 'client.started' })
    .catch(rejectedOnly)
    .finally(() => client.close());
  if (result instanceof WorkflowError) return [failed(result.message, getRemedy(result))];
  if (result === null)
    return [failed('the probe’s webhook is deleted', 'Run orgctl probe create --renew yes, and apply its Secret.')];
  const delivered = expectThat(
    result.delivered,
    `a worker delivered a test event in ${Math.round(result.durationMs)} ms`,
    `the test event was not delivered (${result.cause}): ${result.explanation}`,
    workerRemedy,
  );
  const own = posts.filter(({ headers }) => headers['webhook-id'] === result.eventId);
  const [post] = own;
  if (post === undefined) return [delivered, failed('the test event did not arrive at this receiver', workerRemedy)];
  const wrong = verifyDelivery({ ...post, secrets: [webhookSecret] }).checks.filter((check) => !check.ok);
  return [
    delivered,
    own.length === 1
      ? ok('it arrived once')
      : failed(`it arrived ${own.length} times, and should arrive once`, workerRemedy),
    expectThat(
      wrong.length === 0,
      'both of its signatures verify',
      `its ${wrong.map(({ name }) => name).join(', ')} failed`,
      'Run orgctl probe create --renew yes, and apply its Secret.',
    ),
  ];
}

function rejectedOnly(error: unknown): WorkflowError {
  if (error instanceof WorkflowError) return error;
  throw error;
}

async function startReceiver({ port }: ProbeConfig): Promise<{ posts: Post[]; stop: () => void }> {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method === 'POST') posts.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  server.listen(port); // every address, of IPv6 and of IPv4
  await once(server, 'listening');
  return {
    posts,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function read({ api, organizationId }: ProbeConfig, key: string): Promise<Response> {
  return fetch(`${api}/v1/orgs/${organizationId}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(timeoutMs),
  });
}
