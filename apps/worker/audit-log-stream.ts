import type { Attributes } from '@opentelemetry/api';
import { CompiledQuery } from 'kysely';
import { claimAuditStreamSql, recordAuditStreamedSql, type StreamedEntry } from '#domain/audit-log/stream.ts';
import type { Queryable } from '#domain/db/database.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import type { OtlpEndpoint } from '#runtime/settings/otlp.ts';
import { type AuditLogExporter, openAuditLogExporter } from './audit-log-exporter.ts';

const entriesPerExport = 500;
const exportTimeoutMs = 10_000;
/** Longer than an export may take, so that no other worker sends the same entries meanwhile. */
const claimSeconds = 30;

interface AuditLogStreamOptions {
  db: Queryable;
  otlpEndpoint: OtlpEndpoint;
  region: string;
  everyMs?: number;
  onError: (cause: unknown) => void;
}

/**
 * Streams the audit log to an OTLP/HTTP endpoint as log records, in the order of the hash chains.
 * An entry arrives at least once: a repeated one has the same `org_api.audit_entry.id`, and an
 * entry that counts requests is sent again after it has grown. The SDK is loaded by the first run.
 */
export class AuditLogStream {
  readonly #options: AuditLogStreamOptions;
  readonly #loop: IntervalLoop;
  #exporter: AuditLogExporter | null = null;

  constructor(options: AuditLogStreamOptions) {
    const { everyMs = 1_000, onError } = options;
    this.#options = options;
    this.#loop = new IntervalLoop({ run: () => this.#sendNext(), everyMs, onError });
  }

  start(): Promise<void> {
    return this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#exporter?.close();
    this.#exporter = null;
  }

  async #sendNext(): Promise<void> {
    const { db, otlpEndpoint, region } = this.#options;
    this.#exporter ??= await openAuditLogExporter({ otlpEndpoint, region, timeoutMs: exportTimeoutMs });
    const claim = CompiledQuery.raw(claimAuditStreamSql, [entriesPerExport, claimSeconds]);
    const rows = await db.query<StreamedEntry>(claim);
    const [first] = rows;
    if (first === undefined) return;
    await this.#exporter.send(
      rows.map((entry) => ({ name: entry.action, at: new Date(entry.at), attributes: buildAttributes(entry) })),
    );
    await db.query(CompiledQuery.raw(recordAuditStreamedSql, [first.upTo]));
    if (rows.length >= entriesPerExport) this.#loop.runNow();
  }
}

function buildAttributes({ objectIds, ...entry }: StreamedEntry): Attributes {
  const all = {
    'org_api.audit_entry.id': entry.id,
    'org_api.audit_entry.at': entry.at,
    'organization.id': entry.organizationId,
    'user.id': entry.personId,
    'api_key.id': entry.keyId,
    'client.address': entry.address,
    'http.response.status_code': entry.status,
    'error.type': entry.code,
    'org_api.audit_entry.count': entry.count,
    ...Object.fromEntries(
      Object.entries(objectIds ?? {}).map(([name, id]) => [`org_api.audit_entry.object.${name}`, id]),
    ),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)) as Attributes;
}
