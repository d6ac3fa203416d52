import { z } from 'zod';
import { readSettings } from '#runtime/settings/read.ts';
import {
  addressBlocks,
  databaseUrl,
  days,
  logLevel,
  port,
  region,
  temporalAddress,
  webhookSecretKeys,
  wholeNumber,
} from '#runtime/settings/types.ts';
import { defaultDelaysMs, parseSchedule } from '#workflows/deliver-event/schedule.ts';

/**
 * The worker's settings. README lists each with its unit and default. The 10 s of an attempt are the contract's with receivers and no setting; after how long an attempt counts as
 * abandoned (45 s) follows from them.
 */
const Settings = z.object({
  REGION: region.describe('us or ca'),
  WORKER_DATABASE_URL: databaseUrl.describe('the PostgreSQL URL of the worker’s own login'),
  TEMPORAL_ADDRESS: temporalAddress.describe('host:port of Temporal'),
  TEMPORAL_NAMESPACE: z.string().min(1).describe('the namespace of this region'),
  WEBHOOK_SECRET_KEYS: webhookSecretKeys.describe('the keys that seal signing secrets, version:base64, newest first'),
  WEBHOOK_ALLOW: addressBlocks,
  DELIVERY_SCHEDULE: z
    .string()
    .optional()
    .transform((text, context) => {
      try {
        return text === undefined ? defaultDelaysMs : parseSchedule(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as RangeError).message });
        return z.NEVER;
      }
    }),
  RECONCILE_AFTER: z
    .string()
    .default('60s')
    .transform((text, context) => {
      const [waitMs] = /,/.test(text) ? [] : tryParse(text);
      if (waitMs !== undefined && waitMs >= 1_000) return waitMs;
      context.addIssue({ code: 'custom', message: 'must be one wait of at least a second, for example 60s or 2m' });
      return z.NEVER;
    }),
  DELIVERY_SLOTS: wholeNumber(1, 2_000).default(200),
  DELIVERY_SLOW_SLOTS: wholeNumber(1, 2_000).default(200),
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10),
  ACTIVITY_RETENTION: days.default(730),
  HOST: z.string().default('0.0.0.0'),
  METRICS_PORT: port.default(9090),
  LOG_LEVEL: logLevel,
});

function tryParse(text: string): number[] {
  try {
    return parseSchedule(text);
  } catch {
    return [];
  }
}

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    region: s.REGION,
    databaseUrl: s.WORKER_DATABASE_URL,
    databasePoolMax: s.DATABASE_POOL_MAX,
    temporalAddress: s.TEMPORAL_ADDRESS,
    temporalNamespace: s.TEMPORAL_NAMESPACE,
    webhookSecretKeys: s.WEBHOOK_SECRET_KEYS,
    webhookAllow: s.WEBHOOK_ALLOW,
    delaysMs: s.DELIVERY_SCHEDULE,
    /** How late a delivery without a workflow is before it gets a new round. */
    reconcileAfterMs: s.RECONCILE_AFTER,
    promptSlots: s.DELIVERY_SLOTS,
    slowSlots: s.DELIVERY_SLOW_SLOTS,
    activityRetentionDays: s.ACTIVITY_RETENTION,
    host: s.HOST,
    metricsPort: s.METRICS_PORT,
    logLevel: s.LOG_LEVEL,
  });
}

export type WorkerConfig = ReturnType<typeof readConfig>;
