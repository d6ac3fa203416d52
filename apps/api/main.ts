import { runApp } from '#runtime/run.ts';
import { startApi } from './app.ts';
import { readConfig } from './config.ts';

/**
 * Runs the read API as a process: `node apps/api/main.ts`, with settings from the environment
 * (docs/configuration.md). SIGTERM drains it.
 */
await runApp({ name: 'api', readConfig, start: startApi });
