import type { AuditAnchor } from '#domain/audit-log/chain.ts';
import type { OtlpEndpoint } from '#runtime/settings/otlp.ts';
import { type AuditLogExporter, openAuditLogExporter } from './audit-log-exporter.ts';

/** Short, because the other steps of maintenance wait meanwhile. */
const exportTimeoutMs = 2_000;

/**
 * Sends anchors: each is one OTLP log record, `audit_log.anchor`, of the stream of the audit log.
 * An anchor arrives at least once.
 */
export class AnchorSender {
  readonly #options: { otlpEndpoint: OtlpEndpoint; region: string };
  #exporter: AuditLogExporter | null = null;

  constructor(options: { otlpEndpoint: OtlpEndpoint; region: string }) {
    this.#options = options;
  }

  /** @throws Error when the endpoint did not accept the anchors. */
  async send(anchors: readonly AuditAnchor[]): Promise<void> {
    if (anchors.length === 0) return;
    this.#exporter ??= await openAuditLogExporter({ ...this.#options, timeoutMs: exportTimeoutMs });
    const at = new Date();
    await this.#exporter.send(
      anchors.map(({ organizationId, month, length, hash }) => ({
        name: 'audit_log.anchor',
        at,
        attributes: {
          'organization.id': organizationId,
          'org_api.audit_log.anchor.month': month,
          'org_api.audit_log.anchor.length': length,
          'org_api.audit_log.anchor.hash': hash,
        },
      })),
    );
  }

  async stop(): Promise<void> {
    await this.#exporter?.close();
    this.#exporter = null;
  }
}
