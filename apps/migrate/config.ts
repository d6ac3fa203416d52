import { z } from 'zod';
import type { LoginRole } from '#domain/db/login-rights.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { databaseUrl, days } from '#runtime/settings/types.ts';
import type { Login } from './logins.ts';

export const Settings = z.object({
  DATABASE_URL: databaseUrl.describe('PostgreSQL URL (15 or newer) of the owner of the database.'),
  API_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL URL of the login of the API. `migrate` creates the login and gives it its password and rights.',
    ),
  WORKER_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL URL of the login of the worker. `migrate` creates the login and gives it its password and rights.',
    ),
  CONSOLE_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL URL of the login of the console. `migrate` creates the login and gives it its password and rights.',
    ),
  PLATFORM_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL URL of the login of the platform’s own application. `migrate` creates the login and gives it ' +
        'its password and rights.',
    ),
  OPERATOR_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL URL of the login of the Kubernetes operator. `migrate` creates the login and gives it its ' +
        'password and rights.',
    ),
  AUDIT_LOG_RETENTION_FLOOR: days.optional().meta({
    description: 'Days of the audit log that no worker can drop. `AUDIT_LOG_RETENTION` cannot be shorter.',
    shown: 'what the database has, at first 90 days',
  }),
});

/**
 * Reads the migrator's settings: the owner's URL, and the login of each app whose URL is set.
 *
 * @throws InvalidSettingsError
 */
export function readConfig(environment: Record<string, string | undefined> = process.env): {
  owner: PostgresServer;
  logins: Login[];
  auditLogFloorDays: number | undefined;
} {
  const s = readSettings(Settings, environment);
  const servers: Record<LoginRole, PostgresServer | undefined> = {
    api: s.API_DATABASE_URL,
    worker: s.WORKER_DATABASE_URL,
    console: s.CONSOLE_DATABASE_URL,
    platform: s.PLATFORM_DATABASE_URL,
    operator: s.OPERATOR_DATABASE_URL,
  };
  const logins = (Object.keys(servers) as LoginRole[]).flatMap((role) => {
    const server = servers[role];
    return server === undefined ? [] : [{ role, server }];
  });
  return { owner: s.DATABASE_URL, logins, auditLogFloorDays: s.AUDIT_LOG_RETENTION_FLOOR };
}
