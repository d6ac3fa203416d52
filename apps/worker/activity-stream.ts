import type { Attributes } from '@opentelemetry/api';
import type { Pool } from 'pg';
import { claimActivityStreamSql, recordActivityStreamedSql, type StreamedLine } from '#domain/audit-log/stream.ts';
import { createIntervalLoop } from '#runtime/flow/interval-loop.ts';
import type { OtlpEndpoint } from '#runtime/settings/otlp.ts';
import { type ActivityExporter, openActivityExporter } from './activity-exporter.ts';

const linesPerExport = 500;
const exportTimeoutMs = 10_000;
/** Longer than an export may take, so that no other worker sends the same rows meanwhile. */
const leaseSeconds = 30;

/**
 * Streams the activity log to an OTLP/HTTP endpoint as log records, in the order of the hash
 * chains. A row arrives at least once: a repeated one has the same `org_api.activity.id`, and a row
 * that counts requests is sent again after it has grown. The SDK is loaded by the first run.
 */
export function createActivityStream(options: {
  pool: Pool;
  otlpEndpoint: OtlpEndpoint;
  region: string;
  everyMs?: number;
  onError: (cause: unknown) => void;
}) {
  const { pool, otlpEndpoint, region, everyMs = 1_000, onError } = options;
  let exporter: ActivityExporter | null = null;

  async function sendNext(): Promise<void> {
    exporter ??= await openActivityExporter({ otlpEndpoint, region, timeoutMs: exportTimeoutMs });
    const { rows } = await pool.query<StreamedLine>(claimActivityStreamSql, [linesPerExport, leaseSeconds]);
    const [first] = rows;
    if (first === undefined) return;
    await exporter.send(
      rows.map((line) => ({ name: line.action, at: new Date(line.at), attributes: attributesOf(line) })),
    );
    await pool.query(recordActivityStreamedSql, [first.upTo]);
    if (rows.length >= linesPerExport) loop.runNow();
  }

  const loop = createIntervalLoop({ run: sendNext, everyMs, onError });
  return {
    start: loop.start,
    async stop(): Promise<void> {
      await loop.stop();
      await exporter?.close();
      exporter = null;
    },
  };
}

function attributesOf({ objectIds, ...line }: StreamedLine): Attributes {
  const all = {
    'org_api.activity.id': line.id,
    'org_api.activity.at': line.at,
    'organization.id': line.organizationId,
    'user.id': line.personId,
    'api_key.id': line.keyId,
    'client.address': line.address,
    'http.response.status_code': line.status,
    'error.type': line.code,
    'org_api.activity.count': line.count,
    ...Object.fromEntries(Object.entries(objectIds ?? {}).map(([name, id]) => [`org_api.activity.object.${name}`, id])),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)) as Attributes;
}
