import { createServer } from 'node:http';
import { listenLocally } from '#test/listen-locally.ts';

/** A span of OTLP/HTTP's JSON with plain attributes and times. Times are Unix time in ms. */
export interface CollectedSpan {
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  startMs: number;
  endMs: number;
  attributes: Record<string, unknown>;
  events: { name: string; atMs: number }[];
  isError: boolean;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}
interface OtlpSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  events: { name: string; timeUnixNano: string }[];
  status: { code?: number };
}
interface OtlpBody {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

/**
 * Starts an OTLP/HTTP collector for a test. It keeps every byte that it receives, and each span
 * once, as a store of traces does. A span may be sent twice: an exporter without a response in time
 * sends its batch again, and a repeated workflow task reports the round's end again, under the same
 * ids.
 */
export async function startCollector() {
  const bodies: Buffer[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url !== '/v1/traces') return void response.writeHead(404).end();
      bodies.push(Buffer.concat(parts));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  const port = await listenLocally(server);
  return {
    url: `http://127.0.0.1:${port}`,
    bytes: () => Buffer.concat(bodies),
    spans: () => {
      const sent = bodies.flatMap((body) => listSpans(JSON.parse(String(body)) as OtlpBody));
      return [...new Map(sent.map((span) => [`${span.traceId}/${span.spanId}`, span])).values()];
    },
  };
}

function listSpans({ resourceSpans }: OtlpBody): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(plain(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ service, ...parseSpan(span) })));
  });
}

function parseSpan({ name, traceId, spanId, parentSpanId, status, ...span }: OtlpSpan): Omit<CollectedSpan, 'service'> {
  return {
    name,
    traceId,
    spanId,
    parentSpanId: parentSpanId || undefined,
    startMs: ms(span.startTimeUnixNano),
    endMs: ms(span.endTimeUnixNano),
    attributes: plain(span.attributes),
    events: span.events.map((event) => ({ name: event.name, atMs: ms(event.timeUnixNano) })),
    isError: status.code === 2,
  };
}

const ms = (nanoseconds: string) => Number(nanoseconds) / 1e6;
const plain = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
