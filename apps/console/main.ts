import { runApp } from '#runtime/run.ts';
import { startConsole } from './app.ts';
import { readConfig } from './config.ts';

/**
 * The console as a process: `node apps/console/main.ts`, settings from the environment
 * (docs/configuration.md), SIGTERM drains.
 */
await runApp({ name: 'console', readConfig, start: startConsole });
