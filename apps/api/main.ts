import { runApp } from '#runtime/run.ts';
import { startApi } from './app.ts';
import { readConfig } from './config.ts';

/**
 * The read API as a process: `node apps/api/main.ts`, settings from the environment
 * (docs/configuration.md), SIGTERM drains.
 */
await runApp({ name: 'api', readConfig, start: startApi });
