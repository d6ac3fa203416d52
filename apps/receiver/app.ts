import type { IncomingMessage, ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { startServer } from '#runtime/http-server.ts';
import type { Logger } from '#runtime/log.ts';
import { readBody, send } from './body.ts';
import { type ReceiverConfig, Secrets } from './config.ts';
import { Failing, type Failure } from './failing.ts';
import { pageFiles } from './page.ts';
import { type Arrival, ReceivedEvents } from './received.ts';

const loopback = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);

/**
 * Starts the sample receiver: endpoints at `/hooks/<name>` that verify with a published library, a
 * page that lists deliveries, and a switch that makes it fail for a while. It is an example for
 * partners and stores only what it receives.
 */
export async function startReceiver(
  config: ReceiverConfig,
  log: Logger,
): Promise<{ url: string; stop(): Promise<void> }> {
  const secrets = new Map(Object.entries(config.secrets));
  const received = new ReceivedEvents();
  const failing = new Failing();

  async function receive(request: IncomingMessage, response: ServerResponse, endpoint: string): Promise<void> {
    const body = await readBody(request);
    if (body === null) return send(response, 413, { error: 'too_large', message: 'An event has at most 1 MiB.' });
    const rejection = findRejection(endpoint, body, request.headers, secrets.get(endpoint));
    const problem = rejection?.message ?? null;
    const { response: planned, ...explanation } = buildResponse(failing.current(), rejection);
    const { id: eventId, type, occurrence } = readEvent(body, request.headers);
    const sequence = Number(request.headers['webhook-sequence']) || null;
    const arrival = { endpoint, eventId, type, sequence, verified: problem === null, problem, response: planned };
    const { times, duplicate, late } = received.record({ ...arrival, occurrence }, new Date());
    log.info({ ...arrival, attempt: request.headers['webhook-attempt'], times, duplicate, late }, 'received');
    if (planned === 'hang') return;
    if (planned === 'reset') return void request.socket.resetAndDestroy();
    if (planned === 204) return void response.writeHead(204).end();
    send(response, planned, explanation);
  }

  async function storeSecrets(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A page of another site could send a form here, but not JSON.
    const isOurs =
      loopback.has(request.socket.remoteAddress ?? '') && request.headers['content-type'] === 'application/json';
    if (!isOurs)
      return send(response, 403, { error: 'forbidden', message: 'Send secrets as JSON, from this machine only.' });
    const parsed = Secrets.safeParse(parseJson(await readBody(request)));
    if (!parsed.success)
      return send(response, 400, { error: 'invalid_request', message: 'Send {"name": ["whsec_…"]}.' });
    for (const [name, ofName] of Object.entries(parsed.data)) secrets.set(name, ofName);
    response.writeHead(204).end();
  }

  function fail(response: ServerResponse, query: URLSearchParams): void {
    const set = failing.set(query);
    if ('problem' in set) {
      send(response, 400, { error: 'invalid_request', message: set.problem });
    } else {
      log.info(set, 'failing as asked');
      send(response, 200, set);
    }
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://receiver');
    const [, endpoint] = /^\/hooks\/([\w-]{1,80})$/.exec(pathname) ?? [];
    const page = pageFiles[pathname];
    const requested = `${request.method} ${pathname}`;
    if (request.method === 'POST' && endpoint !== undefined) return receive(request, response, endpoint);
    if (requested === 'POST /secrets') return storeSecrets(request, response);
    if (requested === 'POST /fail') return fail(response, searchParams);
    if (requested === 'GET /deliveries')
      return send(response, 200, {
        endpoints: [...secrets.keys()],
        failingForMs: failing.leftMs(),
        deliveries: received.list(),
      });
    if (request.method === 'GET' && page !== undefined)
      return void response.writeHead(200, page.headers).end(page.text);
    send(response, 404, { error: 'not_found', message: 'Events are posted to /hooks/<name>; the page is at /.' });
  }

  const server = await startServer({
    handler: (request, response) => void route(request, response).catch(() => response.destroy()),
    host: config.host,
    port: config.port,
    deadlineMs: 500,
  });
  log.info({ url: server.url, endpoints: [...secrets.keys()] }, 'the sample receiver is running');
  return server;
}

interface Rejection {
  status: number;
  error: string;
  message: string;
}

/** Returns the response to a delivery: it fails as asked, else it is rejected or accepted. */
function buildResponse(failure: Failure | null, rejection: Rejection | null) {
  const failing = { error: 'failing', message: rejection?.message ?? 'Failing, as asked.' };
  if (failure !== null) return { response: failure.how === 'status' ? failure.status : failure.how, ...failing };
  const { status, ...explanation } = rejection ?? { status: 204, error: '', message: '' };
  return { response: status, ...explanation };
}

/** Returns why a delivery is rejected, or null when it verifies with one of the endpoint's secrets. */
function findRejection(
  endpoint: string,
  body: Buffer,
  headers: IncomingMessage['headers'],
  secrets: readonly string[] = [],
): Rejection | null {
  let message = `No signing secret is known for ${endpoint}. Enter the webhook’s secret on the receiver’s page.`;
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(body, headers as Record<string, string>);
      return null;
    } catch (error) {
      message = (error as Error).message;
    }
  }
  // A sender's console explains 401 with the signing secret.
  return secrets.length === 0
    ? { status: 401, error: 'no_secret', message }
    : { status: 400, error: 'not_verified', message };
}

/** Returns what a delivery contains; unreadable fields are `?`. */
function readEvent(
  body: Buffer,
  headers: IncomingMessage['headers'],
): Pick<Arrival, 'type' | 'occurrence'> & { id: string } {
  const event = readMembers(parseJson(body));
  const data = readMembers(event.data);
  const subject = readText(data.seatId) ?? readText(data.grantId);
  const createdAt = readText(event.createdAt);
  const isKnown = event.test !== true && subject !== null && createdAt !== null;
  return {
    id: String(headers['webhook-id'] ?? '?').slice(0, 100),
    type: readText(event.type) ?? '?',
    occurrence: isKnown ? { subject, createdAt } : null,
  };
}

const readMembers = (value: unknown) =>
  (typeof value === 'object' && value !== null ? value : {}) as Partial<Record<string, unknown>>;

const readText = (value: unknown) => (typeof value === 'string' ? value.slice(0, 100) : null);

function parseJson(body: Buffer | null): unknown {
  try {
    return JSON.parse(body?.toString('utf8') ?? '');
  } catch {
    return null;
  }
}
