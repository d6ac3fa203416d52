import { findLoopbackAddress } from '#delivery/failed-tasks.ts';
import { runApp } from '#runtime/run.ts';
import { installTemporalLog } from '#workflows/temporal-log.ts';
import { startWorker } from './app.ts';
import { readConfig } from './config.ts';

/** `node apps/worker/main.ts`, with settings from the environment (docs/configuration.md). */
await runApp({
  name: 'worker',
  readConfig,
  start: async (config, log) => {
    // The trial of a new process counts failed workflow tasks with the core's own metrics.
    const coreMetrics = config.readyAfterMs === 0 ? undefined : await findLoopbackAddress();
    installTemporalLog(log, coreMetrics);
    return startWorker(config, log, coreMetrics);
  },
});
