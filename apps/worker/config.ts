import { z } from 'zod';
import { readSettings } from '#runtime/settings/read.ts';
import { databaseUrl, days, logLevel, port, region } from '#runtime/settings/types.ts';

/** The worker's settings. README lists each with its unit and default. */
const Settings = z.object({
  REGION: region.describe('us or ca'),
  WORKER_DATABASE_URL: databaseUrl.describe('the PostgreSQL URL of the worker’s own login'),
  ACTIVITY_RETENTION: days.default(730),
  HOST: z.string().default('0.0.0.0'),
  METRICS_PORT: port.default(9090),
  LOG_LEVEL: logLevel,
});

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    region: s.REGION,
    databaseUrl: s.WORKER_DATABASE_URL,
    activityRetentionDays: s.ACTIVITY_RETENTION,
    host: s.HOST,
    metricsPort: s.METRICS_PORT,
    logLevel: s.LOG_LEVEL,
  });
}

export type WorkerConfig = ReturnType<typeof readConfig>;
