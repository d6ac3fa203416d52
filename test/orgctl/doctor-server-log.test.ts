/** Settings by which PostgreSQL's own log would quote rows and statements, each on a real server. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { readServerLog } from '#test/traces.ts';
import { quietLogSettings } from '../../apps/dev/servers/postgres.ts';
import { factsSql } from '../../apps/orgctl/doctor/postgresql.ts';

const quoting: Readonly<Record<string, string>> = {
  log_error_verbosity: 'default',
  log_min_error_statement: 'error',
  log_parameter_max_length_on_error: '-1',
  log_statement: 'mod',
  log_min_duration_statement: '250',
  log_min_duration_sample: '100',
  log_transaction_sample_rate: '0.01',
  log_min_messages: 'debug2',
  debug_print_parse: 'on',
  debug_print_rewritten: 'on',
  debug_print_plan: 'on',
  'auto_explain.log_min_duration': '1000',
  'pgaudit.log': 'write',
  'pgaudit.role': 'auditor',
};

async function connect() {
  const client = new pg.Client({ connectionString: inject('databaseAdminUrl') });
  client.on('error', () => {}); // some are ended
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

const find = async (client: pg.Client) => (await client.query<{ quoting: string[] }>(factsSql)).rows[0]?.quoting;

it('doctor names each setting that makes the log of PostgreSQL quote rows or statements, and none that does not', async () => {
  const client = await connect();
  expect(await find(client)).toEqual([]);
  await client.query(`load 'auto_explain'`);
  expect(await find(client)).toEqual([]);
  for (const [name, value] of Object.entries(quoting)) {
    await client.query('begin');
    await client.query('select set_config($1, $2, true)', [name, value]);
    expect(await find(client)).toEqual([name]);
    await client.query('rollback');
  }
  await client.query(`set log_statement = 'ddl'`);
  expect(await find(client)).toEqual([]);
});

it('doctor names a setting that only one login has, or one database', async () => {
  const client = await connect();
  await client.query('begin'); // other tests see nothing of it
  await client.query('create role loud');
  for (const change of [
    `role loud set log_statement = 'all'`,
    'role loud set log_duration = on', // says how long, and not what
    'database postgres set log_min_duration_statement = 5',
  ])
    await client.query(`alter ${change}`);
  expect((await find(client))?.sort()).toEqual(['log_min_duration_statement of postgres', 'log_statement of loud']);
  await client.query('rollback');
});

it('the pages that set up a server set what the server of npm start sets', () => {
  const listed = Object.entries(quietLogSettings).map(([name, value]) => `${name}: ${value === '0' ? '"0"' : value}`);
  for (const page of ['prepare-postgresql.md', 'restore-a-backup.md']) {
    const text = readFileSync(path.join(import.meta.dirname, '../../docs/operations', page), 'utf8');
    expect(text.match(/^ *log_\w+: .*$/gm)?.map((line) => line.trim())).toEqual(listed);
  }
});

it('the log does not quote the statement of a connection that is ended, as it would at the level fatal or debug2', async () => {
  const other = await connect();
  const end = async (level: string, setting = 'log_min_error_statement') => {
    const client = await connect();
    await client.query('select set_config($1, $2, false)', [setting, level]);
    const { rows } = await client.query('select pg_backend_pid() as pid');
    const ended = client.query(`select pg_sleep($1) as "Quillfeather ${level}"`, [600]).catch((error) => error.code);
    const isRunning = async () =>
      (await other.query(`select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'`, [rows[0].pid]))
        .rowCount;
    await expect.poll(isRunning).toBe(1);
    await other.query('select pg_terminate_backend($1)', [rows[0].pid]);
    expect(await ended).toBe('57P01');
  };
  await end('panic');
  await end('fatal');
  await end('debug2', 'log_min_messages');

  const log = await readServerLog({ owner: { pool: other } });

  expect(log).toContain('Quillfeather fatal');
  expect(log).toContain('Quillfeather debug2');
  expect(log).not.toContain('Quillfeather panic');
});
