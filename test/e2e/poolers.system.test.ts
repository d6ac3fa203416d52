/** PgBouncer, Debian's, in front of PostgreSQL: every process says in a sentence that it cannot be used. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { connectionOptions } from '#domain/db/server.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { spawnApp } from '#test/child-app.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { callOrgctl } from '#test/orgctl.ts';
import { startPgBouncer } from '#test/pgbouncer.ts';
import { runCommand } from '#test/run-command.ts';
import { apiEnvironment, consoleEnvironment, setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { workerEnvironment } from '#test/worker.ts';

const sentence = (setting: string) => `${setting} leads to a pooler, such as PgBouncer,`;

describe('PgBouncer', () => {
  it.each([
    ['session', {}],
    ['session', { ignore_startup_parameters: 'options' }],
    ['transaction', { ignore_startup_parameters: 'options' }],
    ['statement', { ignore_startup_parameters: 'options' }],
  ])('gives no session what it asks for in %s mode, with %j', async (pool_mode, settings) => {
    const { database } = await setupDatabase();
    const through = await startPgBouncer({ pool_mode, ...settings });
    for (const url of [database.ownerUrl, database.urls.worker]) {
      const open = async (url: string) => {
        const session = new PrimaryConnection(connectionOptions(parsePostgresUrl(url), { applicationName: 'test' }));
        session.on('error', () => {});
        await session.connect();
        await session.end();
      };
      await open(url);
      await expect(open(through(url))).rejects.toMatchObject({ code: '08P01' });
    }
  });

  it('in transaction mode is rejected by every app at its start, by every command and by orgctl doctor', async () => {
    const { database } = await setupDatabase();
    const through = await startPgBouncer({ pool_mode: 'transaction', ignore_startup_parameters: 'options' });
    const { api, console, worker } = database.urls;
    const urls = { ...database.urls, api: through(api), console: through(console), worker: through(worker) };
    const pooled = { ...database, ownerUrl: through(database.ownerUrl), urls };

    const apps = [
      ['api', 'API_DATABASE_URL', apiEnvironment(pooled)],
      ['console', 'CONSOLE_DATABASE_URL', consoleEnvironment(pooled, 'http://localhost:3000')],
      ['worker', 'WORKER_DATABASE_URL', workerEnvironment(pooled)],
    ] as const;
    for (const [name, setting, environment] of apps) {
      const app = spawnApp(name, environment);
      expect(await app.ended, name).toEqual({ code: 1, signal: null });
      expect(app.lines.join('\n')).toContain(`The ${name} did not start: ${sentence(setting)}`);
    }

    const file = path.join(temporaryFolder(), 'us.json');
    writeFileSync(file, '{}');
    const env = { ...childEnvironment, DATABASE_URL: pooled.ownerUrl, REGION: 'us' };
    for (const command of [
      ['apps/migrate/main.ts'],
      ['apps/import/main.ts', file],
      ['apps/orgctl/main.ts', 'org', 'list'],
    ])
      expect(await runCommand(command, env)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(sentence('DATABASE_URL')),
      });

    const { code, stdout } = await callOrgctl({ REGION: 'us', API_DATABASE_URL: pooled.urls.api }, [
      'doctor',
      '--json',
    ]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout).findings).toContainEqual(
      expect.objectContaining({
        state: 'failed',
        message: expect.stringContaining(`API_DATABASE_URL cannot be used: ${sentence('API_DATABASE_URL')}`),
      }),
    );
  });
});
