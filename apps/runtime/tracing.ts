import { context, type Span, SpanStatusCode, trace } from '@opentelemetry/api';

/** Spans around the parts of a request. Without an OTLP endpoint `span` calls its function and nothing else. */
export interface Tracing {
  span<T>(name: string, run: () => Promise<T>): Promise<T>;
  /** A root span of one request; attributes hold ids and statuses only. */
  request<T>(name: string, run: (span: Span | null) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/**
 * Opens tracing. The SDK is loaded only when there is an endpoint to send to: it costs 40 MB and start-up time that a pod without
 * tracing should not pay. Spans are sent in batches; on `stop` the rest is sent, for 2 s at most.
 */
export async function openTracing(options: {
  otlpEndpoint: string | null;
  app: string;
  region: string;
}): Promise<Tracing> {
  if (options.otlpEndpoint === null)
    return { span: (_name, run) => run(), request: (_name, run) => run(null), stop: async () => {} };
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
  const exporter = new OTLPTraceExporter({ url: `${options.otlpEndpoint}/v1/traces`, timeoutMillis: 2_000 });
  const provider = new TracerProvider({
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
    stop: async () => {
      // A collector that is away loses its last spans; it must not fail the stop of what is traced.
      const sent = provider.shutdown().catch(() => {});
      await Promise.race([sent, new Promise((resolve) => setTimeout(resolve, 2_000).unref())]);
    },
  };
}
