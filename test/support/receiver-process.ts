import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import type { Behavior } from '../chaos/plan.ts';
import { allowSockets } from './socket-guard.ts';

/** A post as its receiver saw it. */
export interface Post {
  webhookId: string;
  eventId: string;
  attempt: number;
  sequence: string;
  bodySha256: string;
  /** Names of the signature checks that failed. */
  failedChecks: string[];
  /** The status that was completely written; null when none was. */
  answered: number | null;
}

/** The properties of a webhook that receivers need. */
export interface ReceivingWebhook {
  secret: string;
  /** How to answer the `nth` post of an event. */
  plan: (sequence: string, nth: number) => Behavior;
}

/**
 * One server for the receivers of all webhooks, each at `/hooks/<id>`. `webhooks` may grow while it
 * runs.
 */
export async function startReceivers(webhooks: ReadonlyMap<string, ReceivingWebhook>) {
  const posts: Post[] = [];
  const counts = new Map<string, number>();

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {}); // the sender was killed in the middle, so this is not a post
    response.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => receive(request, response, Buffer.concat(chunks)));
  });
  server.keepAliveTimeout = 0;

  function receive(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const webhookId = request.url?.split('/').at(-1) ?? '';
    const webhook = webhooks.get(webhookId);
    if (webhook === undefined) return void response.writeHead(404).end();
    const { headers } = request;
    const verification = verifyDelivery({ headers, body, secrets: [webhook.secret] });
    const post: Post = {
      webhookId,
      eventId: String(headers['webhook-id']),
      attempt: Number(headers['webhook-attempt']),
      sequence: String(headers['webhook-sequence']),
      bodySha256: createHash('sha256').update(body).digest('hex'),
      failedChecks: verification.checks.filter(({ ok }) => !ok).map(({ name }) => name),
      answered: null,
    };
    posts.push(post);
    const key = `${webhookId}/${post.eventId}`;
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    behave(webhook.plan(post.sequence, nth), response, post);
  }

  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  allowSockets('receivers', `http://127.0.0.1:${port}`);
  return {
    posts: posts as readonly Post[],
    buildUrl: (webhookId: string) => `http://127.0.0.1:${port}/hooks/${webhookId}`,
    stop: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

function behave(behavior: Behavior, response: ServerResponse, post: Post): void {
  if (behavior.kind === 'hang') return;
  if (behavior.kind === 'reset') return void response.socket?.resetAndDestroy();
  const { status, retryAfterSeconds, afterMs = 0 } = behavior;
  setTimeout(() => {
    if (response.destroyed) return;
    response.on('finish', () => {
      post.answered = status;
    });
    const retryAfter = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
    response.writeHead(status, retryAfter).end('a response of the receiver');
  }, afterMs);
}
