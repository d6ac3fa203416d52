import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attributes,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { buildOtlpUrl, type OtlpEndpoint } from './settings/otlp.ts';

/** An ended span. Times are Unix time in ms; ids are hexadecimal, 32 digits and 16. */
interface RecordedSpan {
  name: string;
  /** `internal` by default. */
  kind?: 'client';
  traceId: string;
  /** Null for a random one; set where another process has to compute it. */
  spanId: string | null;
  /** Null for a root. */
  parentSpanId: string | null;
  startedAtMs: number;
  endedAtMs: number;
  attributes: Attributes;
  events?: { name: string; atMs: number; attributes?: Attributes }[];
  isError?: boolean;
}

/** Spans around the parts of a request. Without an OTLP endpoint `span` only calls its function. */
export interface Tracing {
  span<T>(name: string, run: () => Promise<T>): Promise<T>;
  /** Runs a request in a root span; attributes contain ids and statuses only. */
  request<T>(name: string, run: (span: Span | null) => Promise<T>): Promise<T>;
  /** Sends an ended span of a trace whose id the caller chose. */
  record(span: RecordedSpan): void;
  stop(): Promise<void>;
}

/**
 * Opens tracing. The SDK is loaded only with an endpoint: it takes 40 MB and start-up time. Spans
 * are sent in batches; `stop` sends the rest within 2 s.
 */
export async function openTracing(options: {
  otlpEndpoint: OtlpEndpoint | null;
  app: string;
  region: string;
}): Promise<Tracing> {
  if (options.otlpEndpoint === null)
    return { span: (_name, run) => run(), request: (_name, run) => run(null), record: () => {}, stop: async () => {} };
  const [
    { BatchSpanProcessor, TracerProvider },
    { OTLPTraceExporter },
    { resourceFromAttributes },
    { AsyncLocalStorageContextManager },
  ] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/context-async-hooks'),
  ]);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const exporter = new OTLPTraceExporter({ url: buildOtlpUrl(options.otlpEndpoint, 'traces'), timeoutMillis: 2_000 });
  const ids = new IdGenerator();
  const provider = new TracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes({ 'service.name': `org-api-${options.app}`, 'org_api.region': options.region }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('org-api');

  async function within<T>(span: Span, run: (span: Span) => Promise<T>): Promise<T> {
    try {
      return await context.with(trace.setSpan(context.active(), span), () => run(span));
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }

  return {
    span: (name, run) => within(tracer.startSpan(name), run),
    request: (name, run) => within(tracer.startSpan(name, { root: true }), run),
    record({ name, kind, traceId, spanId, parentSpanId, startedAtMs, endedAtMs, attributes, events = [], isError }) {
      const parent = { traceId, spanId: parentSpanId ?? '', traceFlags: TraceFlags.SAMPLED, isRemote: true };
      const within = parentSpanId === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
      const options = { kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL, startTime: startedAtMs };
      const span = ids.startAs({ traceId, spanId }, () => tracer.startSpan(name, { ...options, attributes }, within));
      for (const event of events) span.addEvent(event.name, event.attributes ?? {}, event.atMs);
      if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(endedAtMs);
    },
    stop: async () => {
      // A collector that is unavailable loses its last spans. It must not fail the stop.
      const sent = provider.shutdown().catch(() => {});
      await Promise.race([sent, sleep(2_000, undefined, { ref: false })]);
    },
  };
}

const randomId = (bytes: number): string => randomBytes(bytes).toString('hex');

/** Generates random ids, except for the spans of `startAs`: the SDK has no other way to set a span's id. */
class IdGenerator {
  #next: { traceId: string | null; spanId: string | null } = { traceId: null, spanId: null };

  /** Calls `start`, whose span gets these ids; null for a random one. */
  startAs(ids: { traceId: string; spanId: string | null }, start: () => Span): Span {
    this.#next = ids;
    const span = start();
    this.#next = { traceId: null, spanId: null };
    return span;
  }

  generateTraceId(): string {
    return this.#next.traceId ?? randomId(16);
  }

  generateSpanId(): string {
    return this.#next.spanId ?? randomId(8);
  }
}
