import { z } from 'zod';
import { deliveryRetentionDaysAtLeast, redeliverableDays } from '#domain/webhooks/limits.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { readFollowedSettings } from '#runtime/settings/follow.ts';
import { findMailSettings, mailSettings } from '#runtime/settings/mail.ts';
import { findTemporalServer, type TemporalServer, temporalAccess } from '#runtime/settings/temporal.ts';
import { tryPostgres } from '#runtime/settings/try-connection.ts';
import { trySecrets } from '#runtime/settings/try-secrets.ts';
import {
  addressBlocks,
  databaseUrl,
  days,
  logLevel,
  otlpEndpoint,
  port,
  region,
  reject,
  temporalAddress,
  webhookAllow,
  webhookSecretKeys,
  wholeNumber,
} from '#runtime/settings/types.ts';
import { workflowBundleSetting } from '#workflows/bundle.ts';
import { defaultSchedule, longestScheduleMs, parseSchedule } from './schedule-setting.ts';

const secondsOfUnit = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** A schedule takes longer than its waits: a failing webhook has one slot. */
const suspendMarginSeconds = 4 * 3_600;

/** One wait of at least a second, in ms. */
const oneWait = (standard: string) =>
  z
    .string()
    .default(standard)
    .transform(
      (text, context) =>
        tryParseOne(text) ?? reject(context, 'must be one wait of at least a second, for example 60s or 2m'),
    );

/**
 * The worker's settings. The 10 s of an attempt are part of the contract with receivers, so they
 * and what follows from them are no settings.
 */
export const Settings = z.object({
  REGION: region,
  WORKER_DATABASE_URL: databaseUrl.describe(
    'PostgreSQL URL of the login of the worker. `migrate` creates the login and gives it its password and rights.',
  ),
  TEMPORAL_ADDRESS: temporalAddress,
  TEMPORAL_NAMESPACE: z.string().min(1).describe('Temporal namespace of this region.'),
  ...temporalAccess,
  WEBHOOK_SECRET_KEYS: webhookSecretKeys,
  WEBHOOK_ALLOW: webhookAllow,
  PROBE_WEBHOOK_ID: z
    .uuid('must be a UUID')
    .optional()
    .describe('The operator’s probe webhook (`orgctl probe create`, `helm test`).'),
  PROBE_WEBHOOK_ALLOW: addressBlocks.meta({
    description: 'The addresses that the probe webhook alone may reach.',
    shown: 'none',
  }),
  DELIVERY_SCHEDULE: z
    .string()
    .default(defaultSchedule)
    .transform((text, context) => {
      try {
        return parseSchedule(text);
      } catch (error) {
        return reject(context, (error as RangeError).message);
      }
    })
    .describe(
      'Waits after each failed attempt, separated by commas (units ms, s, m, h). Up to 10 % are added to each.',
    ),
  SUSPEND_AFTER: z
    .string()
    .regex(/^[1-9]\d{0,5}[smhd]$/, 'must be a time such as 90m, 84h or 5d (units s, m, h, d)')
    .transform((text) => Number(text.slice(0, -1)) * secondsOfUnit[text.slice(-1) as keyof typeof secondsOfUnit])
    .optional()
    .meta({
      description:
        'How long after the first recorded failure since its last 2xx a webhook is suspended, if two events in a ' +
        'row failed at their last attempt (units s, m, h, d). Not shorter than the schedule.',
      shown: 'the schedule with its jitter and 4 hours (83 hours)',
    }),
  REQUEUE_AFTER: oneWait('60s').describe(
    'How late the workflow of a delivery may ask for its attempt before the delivery is queued again for a new one ' +
      '(units ms, s, m, h).',
  ),
  WORKFLOW_BUNDLE: workflowBundleSetting,
  READY_AFTER: z
    .string()
    .default('60s')
    .transform((text, context) => {
      if (text === '0s') return 0;
      return tryParseOne(text) ?? reject(context, 'must be 0s or a time of at least a second, for example 60s or 2m');
    })
    .describe(
      'How long a new worker delivers before it is ready, unless 20 attempts without an internal error came first ' +
        '(units ms, s, m, h). A rolling update waits for it. 0s: ready at once.',
    ),
  DELIVERY_SLOTS: wholeNumber(1, 2_000)
    .default(200)
    .describe(
      'Worker slots: how many first attempts of runs are made at once. As many are for later ones and for ' +
        'receivers that fail or are slow.',
    ),
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10).describe('Connections to PostgreSQL of one process.'),
  AUDIT_LOG_RETENTION: days
    .default(730)
    .meta({ description: 'Days that the audit log is kept. Whole months are dropped.', shown: '730d' }),
  DELIVERY_RETENTION: days
    .refine((kept) => kept >= deliveryRetentionDaysAtLeast, {
      error:
        `must be ${deliveryRetentionDaysAtLeast}d at least: deliveries can be sent again for ` +
        `${redeliverableDays} days`,
    })
    .default(90)
    .meta({
      description:
        'Days (at least 31) that settled deliveries, their attempts and events without a delivery are ' +
        'kept. The ledger keeps counting them.',
      shown: '90d',
    }),
  HOST: z.string().default('::').describe('Address to listen on. `::` is every address, of IPv4 too.'),
  METRICS_PORT: port.default(9090).describe('Port of `/metrics`, `/livez` and `/readyz`.'),
  LOG_LEVEL: logLevel,
  ...mailSettings,
  AUDIT_LOG_STREAM: z
    .enum(['', 'true', 'false'])
    .default('false')
    .describe(
      '`true` streams the audit log and its daily anchors to `OTEL_EXPORTER_OTLP_ENDPOINT` as OTLP log records ' +
        '(`/v1/logs`), from the first start on: ids, actions, codes and addresses, no names. ' +
        'Each entry arrives at least once.',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint,
});

/** Returns a wait of at least a second in ms; null for any other text. */
function tryParseOne(text: string): number | null {
  try {
    const [waitMs = 0, ...others] = parseSchedule(text);
    return waitMs >= 1_000 && others.length === 0 ? waitMs : null;
  } catch {
    return null;
  }
}

/** No webhook is suspended before its last attempt: shorter times than the schedule are rejected. */
function computeSuspendAfterSeconds(s: z.output<typeof Settings>): number {
  const scheduleSeconds = Math.ceil(longestScheduleMs(s.DELIVERY_SCHEDULE) / 1_000);
  const seconds = s.SUSPEND_AFTER ?? scheduleSeconds + suspendMarginSeconds;
  if (seconds >= scheduleSeconds) return seconds;
  throw new InvalidSettingsError([
    `SUSPEND_AFTER must be at least ${scheduleSeconds}s: the waits of DELIVERY_SCHEDULE take that long with ` +
      'their jitter',
  ]);
}

/** @throws InvalidSettingsError with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const { settings: s, followed } = readFollowedSettings({
    schema: Settings,
    environment,
    names: ['WORKER_DATABASE_URL', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY', 'MAIL_URL'],
    tries: {
      WORKER_DATABASE_URL: tryPostgres('worker'),
      WEBHOOK_SECRET_KEYS: trySecrets,
      TEMPORAL_API_KEY: async (apiKey) => {
        // Temporal's client takes as long to load as everything else.
        const { tryTemporal } = await import('#workflows/connection.ts');
        return tryTemporal({ ...temporal, apiKey: () => apiKey });
      },
    },
  });
  const temporal: TemporalServer = findTemporalServer(s, s.TEMPORAL_NAMESPACE, () => followed.values.TEMPORAL_API_KEY);
  return Object.freeze({
    /** Each look-up of a secret returns its file's newest value (`watchSettings`). */
    followed,
    get database() {
      return followed.values.WORKER_DATABASE_URL;
    },
    get webhookSecretKeys() {
      return followed.values.WEBHOOK_SECRET_KEYS;
    },
    region: s.REGION,
    /** Null: no mail is sent. */
    mail: findMailSettings(s, () => followed.values.MAIL_URL),
    databasePoolMax: s.DATABASE_POOL_MAX,
    temporal,
    webhookAllow: s.WEBHOOK_ALLOW,
    /** The operator's own webhook and the addresses that only it may reach; null without one. */
    probeWebhook: s.PROBE_WEBHOOK_ID === undefined ? null : { id: s.PROBE_WEBHOOK_ID, allow: s.PROBE_WEBHOOK_ALLOW },
    /** Null: bundled when the worker starts. */
    workflowBundle: s.WORKFLOW_BUNDLE,
    delaysMs: s.DELIVERY_SCHEDULE,
    suspendAfterSeconds: computeSuspendAfterSeconds(s),
    /** How late a run asks for its attempt before its delivery is queued for another one. */
    lateMs: s.REQUEUE_AFTER,
    /** How long the trial of a new process lasts; 0: it has none. */
    readyAfterMs: s.READY_AFTER,
    workerSlots: s.DELIVERY_SLOTS,
    auditLogRetentionDays: s.AUDIT_LOG_RETENTION,
    deliveryRetentionDays: s.DELIVERY_RETENTION,
    host: s.HOST,
    metricsPort: s.METRICS_PORT,
    logLevel: s.LOG_LEVEL,
    otlpEndpoint: s.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    isAuditLogStreamed: s.AUDIT_LOG_STREAM === 'true',
  });
}

export type WorkerConfig = ReturnType<typeof readConfig>;
