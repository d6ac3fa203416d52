/** Settings by which PostgreSQL's own log would quote rows and statements, each on a real server. */
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { factsSql } from '../../apps/orgctl/doctor/postgresql.ts';

const quoting: Readonly<Record<string, string>> = {
  log_error_verbosity: 'default',
  log_min_error_statement: 'error',
  log_parameter_max_length_on_error: '-1',
  log_statement: 'mod',
  log_min_duration_statement: '250',
  log_min_duration_sample: '100',
  log_transaction_sample_rate: '0.01',
  debug_print_parse: 'on',
  debug_print_rewritten: 'on',
  debug_print_plan: 'on',
  'auto_explain.log_min_duration': '1000',
  'pgaudit.log': 'write',
};

it('doctor names each setting that makes the log of PostgreSQL quote rows or statements, and none that does not', async () => {
  const client = new pg.Client({ connectionString: inject('databaseAdminUrl') });
  await client.connect();
  onTestFinished(() => client.end());
  const find = async () => (await client.query<{ quoting: string[] }>(factsSql)).rows[0]?.quoting;
  expect(await find()).toEqual([]);
  await client.query(`load 'auto_explain'`);
  expect(await find()).toEqual([]);
  for (const [name, value] of Object.entries(quoting)) {
    await client.query('begin');
    await client.query('select set_config($1, $2, true)', [name, value]);
    expect(await find()).toEqual([name]);
    await client.query('rollback');
  }
  for (const [name, value] of Object.entries({ log_statement: 'ddl', log_min_error_statement: 'fatal' }))
    await client.query('select set_config($1, $2, false)', [name, value]);
  expect(await find()).toEqual([]);
});
