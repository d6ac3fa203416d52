/** Rows that each login of the database may write, with hostile values, and the pages after it. */
import fc from 'fast-check';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { startTestApi } from '#test/setup.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { routes } from '../../apps/console/routes.ts';
import { type ConsoleInstallation, setupConsole } from '../console/setup.ts';
import { pathIn } from './console/requests.ts';
import type { Scene } from './console/scene.ts';
import { listTables, type WritableTable } from './database/catalog.ts';
import { type Value, valuesOfType } from './database/hostile-values.ts';
import { stockDatabase } from './database/stock.ts';
import { listErrors, reportTried, seed, tries } from './tried.ts';

const tried = reportTried('rows of the database');
const pages = routes.filter(({ method, access }) => method === 'GET' && (access === 'member' || access === 'person'));

/** What lets the reader of the pages in: there only rows of the other organization are changed. */
const access = new Set(
  ['api_key', 'console_session', 'membership', 'membership_role', 'organization', 'person', 'role'].concat([
    'second_factor',
    'sign_in',
    'sign_in_confirmation',
  ]),
);

type Row = Record<string, Value>;
interface Write extends WritableTable {
  kind: 'insert' | 'update' | 'delete';
  at: number;
  hostile: Row;
}

it.each(['worker', 'console', 'operator'])(
  'no row that the %s’s login may write breaks a page or a read of its organization',
  async (app) => {
    const t = await setupConsole();
    const [mine, theirs] = await stockDatabase(t);
    const login = `org_api_login_${app}`;
    const tables = await listTables(t.owner.pool, [login]);
    expect(tables.length).toBeGreaterThan(0); // the other logins may write no table: migrate/rights.txt
    const client = new pg.Client({ connectionString: t.database.ownerUrl });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query(`set statement_timeout = '5s'`);
    for (const write of fc.sample(writes(tables, [mine, theirs]), { numRuns: tries(120), seed })) {
      const done = await carryOut(client, write, theirs);
      tried(done ? 'accepted writes' : 'rejected writes');
    }
    expect(await findBroken(t, mine)).toEqual([]);
  },
  120_000,
);

function writes(tables: readonly WritableTable[], scenes: readonly Scene[]): fc.Arbitrary<Write> {
  const ids = scenes.flatMap(({ orgId, key, webhook, owner }) => [orgId, key.id, webhook.id, owner.personId]);
  const kinds = ({ inserts, updates, deletes }: WritableTable) => [
    ...(inserts.length > 0 ? ['insert', 'insert'] : []),
    ...(updates.length > 0 ? ['update', 'update'] : []),
    ...(deletes ? ['delete'] : []),
  ];
  return fc.constantFrom(...tables).chain((table) =>
    fc.constantFrom(...(kinds(table) as Write['kind'][])).chain((kind) => {
      const columns = kind === 'insert' ? table.inserts : kind === 'update' ? table.updates : [];
      const hostile = fc
        .subarray(columns, { minLength: Math.min(1, columns.length), maxLength: Math.min(2, columns.length) })
        .chain((chosen) =>
          fc.record(Object.fromEntries(chosen.map(({ name, type }) => [name, valuesOfType(type, ids)]))),
        );
      return fc.record({ at: fc.nat(1_000), hostile }).map((rest) => ({ ...table, kind, ...rest }));
    }),
  );
}

/** Carries a write out on an existing row, as its login. Returns whether it was accepted. */
async function carryOut(client: pg.Client, write: Write, theirs: Scene): Promise<boolean> {
  const { table, kind, login, key, inserts, hostile, at } = write;
  const { rows } = await client.query<{ row: Row }>(
    `select to_jsonb(t) as row from "${table}" t where not $1 or to_jsonb(t) ->> 'organization_id' = $2
      or to_jsonb(t) ->> 'person_id' = $3 order by 1 limit 100`,
    [access.has(table), theirs.orgId, theirs.owner.personId],
  );
  const row = rows[at % Math.max(1, rows.length)]?.row;
  if (row === undefined || (kind !== 'insert' && key.length === 0)) return false;
  const values: unknown[] = [];
  const bind = (value: unknown) =>
    `$${values.push(typeof value === 'object' && value !== null ? JSON.stringify(value) : value)}`;
  const where = () => key.map((name) => `"${name}"::text = ${bind(row[name])}`).join(' and ');
  const names = inserts.map(({ name }) => `"${name}"`).join(', ');
  const copied = kind === 'insert' ? `${bind({ ...row, ...identity(row) })}::jsonb` : `'{}'`;
  const source = `jsonb_populate_record(null::"${table}", ${copied})`;
  const text = {
    insert: () =>
      `insert into "${table}" (${names}) select ${inserts
        .map(({ name, type }) => (name in hostile ? `${bind(hostile[name])}::${type}` : `r."${name}"`))
        .join(', ')} from ${source} r`,
    update: () =>
      `update "${table}" set ${Object.entries(hostile)
        .map(([name, value]) => `"${name}" = ${bind(value)}`)
        .join(', ')} where ${where()}`,
    delete: () => `delete from "${table}" where ${where()}`,
  }[kind]();
  await client.query(`begin; set local session authorization "${login}"`);
  const done = await client.query(text, values).then(
    ({ rowCount }) => (rowCount ?? 0) > 0,
    () => false,
  );
  // Deferred constraints reject at the commit.
  return await client.query(done ? 'commit' : 'rollback').then(
    () => done,
    () => false,
  );
}

/** A new id for a copy of a row that has one. */
const identity = (row: Row): Row =>
  'id' in row && /^[0-9a-f-]{36}$/.test(`${row.id}`) ? { id: crypto.randomUUID() } : {};

/** Returns the pages and reads that answer 5xx, with what the log says. */
async function findBroken(t: ConsoleInstallation, mine: Scene): Promise<string[]> {
  await t.owner.pool.query('update console_session set second_factor_at = now(), last_seen_at = now()');
  const visitor = t.http(mine.owner);
  const broken: string[] = [];
  let shown = 0;
  for (const route of pages) {
    const { status } = await visitor.get(pathIn(route, mine));
    shown += Number(status === 200);
    if (status >= 500) broken.push(`${route.name}: ${status}`);
  }
  expect(shown).toBeGreaterThan(pages.length / 2);
  const api = await startTestApi(t.database, {}, [], onTestFinished);
  for (const { resource } of endpoints) {
    const { status } = await api.get(`/v1/orgs/${mine.orgId}${resource}`, { key: mine.key.key });
    if (status !== 200) broken.push(`read ${resource}: ${status}`);
  }
  tried('pages and reads after them', pages.length + endpoints.length);
  const faults = listErrors(t.logLines).map((line) => line.slice(0, 600));
  return [...broken, ...new Set(faults)];
}
