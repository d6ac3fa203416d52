import type { ActivityAnchor } from '#domain/audit-log/chain.ts';
import type { OtlpEndpoint } from '#runtime/settings/otlp.ts';
import { type ActivityExporter, openActivityExporter } from './activity-exporter.ts';

/** Short, because the other steps of maintenance wait meanwhile. */
const exportTimeoutMs = 2_000;

/**
 * Returns a sender of anchors: each is one OTLP log record, `activity.anchor`, of the stream of the
 * activity log. An anchor arrives at least once.
 */
export function createAnchorSender(options: { otlpEndpoint: OtlpEndpoint; region: string }) {
  let exporter: ActivityExporter | null = null;
  return {
    /** @throws Error when the endpoint did not accept the anchors. */
    async send(anchors: readonly ActivityAnchor[]): Promise<void> {
      if (anchors.length === 0) return;
      exporter ??= await openActivityExporter({ ...options, timeoutMs: exportTimeoutMs });
      const at = new Date();
      await exporter.send(
        anchors.map(({ organizationId, month, places, hash }) => ({
          name: 'activity.anchor',
          at,
          attributes: {
            'organization.id': organizationId,
            'org_api.activity.anchor.month': month,
            'org_api.activity.anchor.places': places,
            'org_api.activity.anchor.hash': hash,
          },
        })),
      );
    },
    async stop(): Promise<void> {
      await exporter?.close();
      exporter = null;
    },
  };
}
