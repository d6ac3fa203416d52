import { runApp } from '#runtime/run.ts';
import { installTemporalLog } from '#workflows/temporal-log.ts';
import { startOperator } from './app.ts';
import { readConfig } from './config.ts';

/**
 * The operator as a process: `node apps/operator/main.ts`, settings from the environment
 * (docs/configuration.md).
 */
await runApp({
  name: 'operator',
  readConfig,
  start: (config, log) => {
    installTemporalLog(log);
    return startOperator(config, log);
  },
});
