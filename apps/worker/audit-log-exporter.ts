import type { Attributes } from '@opentelemetry/api';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { buildOtlpUrl, type OtlpEndpoint } from '#runtime/settings/otlp.ts';

interface AuditLogRecord {
  name: string;
  at: Date;
  attributes: Attributes;
}

export interface AuditLogExporter {
  /** @throws Error when the endpoint did not accept the records. */
  send(records: readonly AuditLogRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** Opens an exporter of log records to `/v1/logs` of an OTLP/HTTP endpoint. Loads the SDK. */
export async function openAuditLogExporter(options: {
  otlpEndpoint: OtlpEndpoint;
  region: string;
  timeoutMs: number;
}): Promise<AuditLogExporter> {
  const [{ LoggerProvider }, { OTLPLogExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-logs'),
    import('@opentelemetry/exporter-logs-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPLogExporter({
    url: buildOtlpUrl(options.otlpEndpoint, 'logs'),
    timeoutMillis: options.timeoutMs,
  });
  // The SDK's processors drop a batch that was not accepted. This one only collects the records.
  let collected: ReadableLogRecord[] = [];
  const collect = {
    onEmit: (record: ReadableLogRecord) => void collected.push(record),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': 'org-api-audit-log', 'org_api.region': options.region }),
    processors: [collect],
  });
  const logger = provider.getLogger('org-api');
  return {
    async send(records) {
      collected = [];
      for (const { name, at, attributes } of records)
        logger.emit({ eventName: name, timestamp: at, body: name, attributes });
      await new Promise<void>((done, failed) => {
        exporter.export(collected, ({ code, error }) => {
          // 0 is success.
          if (code === 0) done();
          else failed(error ?? new Error('the OTLP endpoint did not accept the log records'));
        });
      });
    },
    async close() {
      await provider.shutdown();
      await exporter.shutdown();
    },
  };
}
