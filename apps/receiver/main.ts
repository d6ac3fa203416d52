import { runApp } from '#runtime/run.ts';
import { startReceiver } from './app.ts';
import { readConfig } from './config.ts';

/**
 * Runs the sample receiver as a process: `node apps/receiver/main.ts`, with settings from the
 * environment (docs/configuration.md).
 */
await runApp({ name: 'receiver', readConfig, start: startReceiver });
