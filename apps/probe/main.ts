import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { SettingsRefused } from '#runtime/settings/read.ts';
import { openWorkflowClient } from '#workflows/client.ts';
import { checkDelivery, checkRead, checkWrongRegion, type Finding, type Post } from './checks.ts';
import { type ProbeConfig, readConfig } from './config.ts';

/**
 * Runs what `helm test` checks: a read with the probe's key, the refusal of a key of the other
 * region, and a signed test event received on a separate port. Prints a line per check; exit code 1
 * when one fails. It uses only the operator's own organization (`orgctl probe create`).
 */
async function main(config: ProbeConfig): Promise<boolean> {
  const { posts, stop } = await startReceiver(config);
  try {
    const reads = await Promise.all([checkRead(config), checkWrongRegion(config)]);
    return [...reads, ...(await deliver(config, posts))].map(printFinding).every(Boolean);
  } finally {
    stop();
  }
}

async function deliver(config: ProbeConfig, posts: readonly Post[]): Promise<Finding[]> {
  await wait(serviceDelayMs);
  const client = await openWorkflowClient(config.temporal);
  try {
    const { organizationId, webhookId } = config;
    return await checkDelivery(
      config,
      () => client.sendTest({ organizationId, webhookId, eventType: 'client.started' }),
      posts,
    );
  } finally {
    await client.close();
  }
}

/** A Service routes to a pod a moment after the pod is ready, and the pod is not notified. */
const serviceDelayMs = 5_000;

async function startReceiver({ host, port }: ProbeConfig): Promise<{ posts: Post[]; stop: () => void }> {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method === 'POST') posts.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  return { posts, stop: () => server.closeAllConnections() };
}

function printFinding({ ok, message }: Finding): boolean {
  process.stdout.write(`${ok ? 'ok    ' : 'FAILED'} ${message}\n`);
  return ok;
}

try {
  process.exit((await main(readConfig())) ? 0 : 1);
} catch (error) {
  const message =
    error instanceof SettingsRefused ? error.message : `The probe could not run: ${(error as Error).message}`;
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
