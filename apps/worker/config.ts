import { z } from 'zod';
import { deliveryRetentionDaysAtLeast, redeliverableDays } from '#domain/webhooks/limits.ts';
import { followSettings, sameButLogin } from '#runtime/settings/follow.ts';
import { readSettings, SettingsRefused } from '#runtime/settings/read.ts';
import { temporalAccess, temporalServerOf } from '#runtime/settings/temporal.ts';
import {
  addressBlocks,
  databaseUrl,
  days,
  httpUrl,
  logLevel,
  port,
  region,
  temporalAddress,
  webhookSecretKeys,
  wholeNumber,
} from '#runtime/settings/types.ts';
import { defaultDelaysMs, longestScheduleMs, parseSchedule } from '#workflows/deliver-event/schedule.ts';
import { BundleRefused, readWorkflowBundle } from './relay/bundle.ts';
import type { WorkerVersion } from './relay/versions.ts';

const buildId = z
  .string()
  .regex(/^\w[\w.-]{0,62}$/, 'must be at most 63 letters, digits, dots, dashes and underscores');

const secondsOfUnit = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** What a schedule takes beyond its waits: an attempt of a failing webhook waits for its only slot, in the slow queue. */
const suspendMarginSeconds = 4 * 3_600;

/** One wait of at least a second, in ms. */
const oneWait = (standard: string) =>
  z
    .string()
    .default(standard)
    .transform((text, context) => {
      const [waitMs] = /,/.test(text) ? [] : tryParse(text);
      if (waitMs !== undefined && waitMs >= 1_000) return waitMs;
      context.addIssue({ code: 'custom', message: 'must be one wait of at least a second, for example 60s or 2m' });
      return z.NEVER;
    });

/**
 * The worker's settings. README lists each with its unit and default. The 10 s of an attempt are the contract's with receivers and no setting; after how long an attempt counts as
 * abandoned (45 s) follows from them.
 */
export const Settings = z.object({
  REGION: region.describe('us or ca'),
  WORKER_DATABASE_URL: databaseUrl.describe('the PostgreSQL URL of the worker’s own login'),
  TEMPORAL_ADDRESS: temporalAddress.describe('host:port of Temporal'),
  TEMPORAL_NAMESPACE: z.string().min(1).describe('the namespace of this region'),
  ...temporalAccess,
  WEBHOOK_SECRET_KEYS: webhookSecretKeys.describe('the keys that seal signing secrets, version:base64, newest first'),
  WEBHOOK_ALLOW: addressBlocks,
  PROBE_WEBHOOK_ID: z.uuid('must be a UUID').optional(),
  PROBE_WEBHOOK_ALLOW: addressBlocks,
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
  SUSPEND_AFTER: z
    .string()
    .regex(/^[1-9]\d{0,5}[smhd]$/, 'must be a time such as 90m, 84h or 5d (units s, m, h, d)')
    .transform((text) => Number(text.slice(0, -1)) * secondsOfUnit[text.slice(-1) as keyof typeof secondsOfUnit])
    .optional(),
  RECONCILE_AFTER: oneWait('60s'),
  WORKFLOW_BUNDLE: z
    .string()
    .optional()
    .transform((file, context) => {
      try {
        return file === undefined ? null : readWorkflowBundle(file);
      } catch (error) {
        if (!(error instanceof BundleRefused)) throw error;
        context.addIssue({ code: 'custom', message: error.message });
        return z.NEVER;
      }
    }),
  WORKER_DEPLOYMENT: z
    .string()
    .regex(/^\w[\w-]{0,99}$/, 'must be at most 100 letters, digits, dashes and underscores')
    .optional(),
  WORKER_BUILD_ID: buildId.optional(),
  WORKER_RAMP_STEP: oneWait('30s'),
  ORG_API_BUILD_ID: buildId.optional(),
  DELIVERY_SLOTS: wholeNumber(1, 2_000).default(200),
  DELIVERY_SLOW_SLOTS: wholeNumber(1, 2_000).default(200),
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10),
  ACTIVITY_RETENTION: days.default(730),
  DELIVERY_RETENTION: days
    .refine((kept) => kept >= deliveryRetentionDaysAtLeast, {
      error: `must be ${deliveryRetentionDaysAtLeast}d at least: deliveries can be sent again for ${redeliverableDays} days`,
    })
    .default(90),
  HOST: z.string().default('0.0.0.0'),
  METRICS_PORT: port.default(9090),
  LOG_LEVEL: logLevel,
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
});

function tryParse(text: string): number[] {
  try {
    return parseSchedule(text);
  } catch {
    return [];
  }
}

/** Null without a deployment: then the workers are unversioned, as in development. */
function versionOf(s: z.output<typeof Settings>): WorkerVersion | null {
  if (s.WORKER_DEPLOYMENT === undefined) return null;
  const ownBuildId = s.WORKER_BUILD_ID ?? s.ORG_API_BUILD_ID;
  if (ownBuildId !== undefined) return { deploymentName: s.WORKER_DEPLOYMENT, buildId: ownBuildId };
  throw new SettingsRefused([
    'WORKER_BUILD_ID is missing: with WORKER_DEPLOYMENT, the build of this worker; images carry theirs',
  ]);
}

/** Longer than the schedule, so that no delivery is cut off before its last attempt; refuses what is shorter. */
function suspendAfterSecondsOf(s: z.output<typeof Settings>): number {
  const scheduleSeconds = Math.ceil(longestScheduleMs(s.DELIVERY_SCHEDULE) / 1_000);
  const seconds = s.SUSPEND_AFTER ?? scheduleSeconds + suspendMarginSeconds;
  if (seconds >= scheduleSeconds) return seconds;
  throw new SettingsRefused([
    `SUSPEND_AFTER must be at least ${scheduleSeconds}s: the waits of DELIVERY_SCHEDULE take that long with their jitter`,
  ]);
}

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  const followed = followSettings({
    schema: Settings,
    environment,
    parsed: s,
    names: ['WORKER_DATABASE_URL', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY'],
    mayReplace: { WORKER_DATABASE_URL: sameButLogin },
  });
  const server = temporalServerOf(s, s.TEMPORAL_NAMESPACE, () => followed.values.TEMPORAL_API_KEY);
  return Object.freeze({
    /** Secrets: each look-up gives the newest value of its file. `watchSettings` keeps them up to date. */
    followed,
    get databaseUrl() {
      return followed.values.WORKER_DATABASE_URL;
    },
    get webhookSecretKeys() {
      return followed.values.WEBHOOK_SECRET_KEYS;
    },
    region: s.REGION,
    databasePoolMax: s.DATABASE_POOL_MAX,
    temporal: server,
    webhookAllow: s.WEBHOOK_ALLOW,
    /** The operator's own webhook and what it alone may reach besides; null without one. */
    probeWebhook: s.PROBE_WEBHOOK_ID === undefined ? null : { id: s.PROBE_WEBHOOK_ID, allow: s.PROBE_WEBHOOK_ALLOW },
    /** Null: bundled when the worker starts. */
    workflowBundle: s.WORKFLOW_BUNDLE,
    version: versionOf(s),
    delaysMs: s.DELIVERY_SCHEDULE,
    suspendAfterSeconds: suspendAfterSecondsOf(s),
    /** How late a delivery is before it is looked after. */
    reconcileAfterMs: s.RECONCILE_AFTER,
    /** How long a new version takes each share of traffic at most, before it becomes current. */
    rampStepMs: s.WORKER_RAMP_STEP,
    promptSlots: s.DELIVERY_SLOTS,
    slowSlots: s.DELIVERY_SLOW_SLOTS,
    activityRetentionDays: s.ACTIVITY_RETENTION,
    deliveryRetentionDays: s.DELIVERY_RETENTION,
    host: s.HOST,
    metricsPort: s.METRICS_PORT,
    logLevel: s.LOG_LEVEL,
    otlpEndpoint: s.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  });
}

export type WorkerConfig = ReturnType<typeof readConfig>;
