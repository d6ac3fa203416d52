import { runApp } from '#runtime/run.ts';
import { startWorker } from './app.ts';
import { readConfig } from './config.ts';

/** The worker as a process: `node apps/worker/main.ts`, settings from the environment (README lists them). */
await runApp({ name: 'worker', readConfig, start: startWorker });
