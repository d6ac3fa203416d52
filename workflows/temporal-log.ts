import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import type { Logger } from '#runtime/log.ts';

/**
 * Sends warnings and errors of the SDK and its native core, which would write to standard error
 * itself, to a log. The SDK's runtime is one a process and cannot be replaced, so this is called
 * once, before anything opens Temporal. With `metricsAddress` (host:port) the core serves its own
 * metrics there.
 */
export function installTemporalLog(log: Logger, metricsAddress?: string): void {
  Runtime.install({
    telemetryOptions: {
      logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
      ...(metricsAddress === undefined ? {} : { metrics: { prometheus: { bindAddress: metricsAddress } } }),
    },
    logger: new DefaultLogger('WARN', ({ level, message }) => log.warn({ sdkLevel: level }, `temporal: ${message}`)),
  });
}
