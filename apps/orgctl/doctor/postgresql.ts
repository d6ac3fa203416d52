import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { groupRoles, type LoginRole, readLoginRights } from '#domain/db/login-rights.ts';
import { listPublicFunctions } from '#domain/db/public-functions.ts';
import { isSchemaCurrent } from '#domain/db/schema-version.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import { describeFailure } from '#runtime/database-failure.ts';
import { checkPeer, checkPem } from './certificates.ts';
import { checkClock } from './clock.ts';
import { createFindings, type Finding } from './finding.ts';

const { ok, warning, failed, expectThat } = createFindings('postgresql');
const connectTimeoutMs = 5_000;

/** A login to check: the setting that names it, and whose it is. */
export interface CheckedLogin {
  setting: string;
  role: LoginRole | 'owner';
  server: PostgresServer;
}

/**
 * Checks that each login connects and has exactly its rights and a current schema; and through the
 * first one that connects, the server itself.
 */
export async function checkPostgres(logins: readonly CheckedLogin[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  let isServerChecked = false;
  for (const login of logins) {
    const { setting, server } = login;
    const connection = new PrimaryConnection(
      connectionOptions(server, { applicationName: 'org-api-orgctl', connectTimeoutMs }),
    );
    try {
      await connection.connect();
      if (!isServerChecked) findings.push(...(await checkServer(connection)));
      isServerChecked = true;
      findings.push(await checkRights(connection, login), await checkSchema(connection, setting));
    } catch (error) {
      const reason = describeFailure(error, setting);
      findings.push(failed(`${setting} cannot be used: ${reason}`, 'Correct the setting, or start the server.'));
    } finally {
      await connection.end().catch(() => {});
    }
    const { ca = null, own = null } = server.tls ?? {};
    if (ca !== null) findings.push(...checkPem(`the authority of ${setting}`, ca.text));
    if (own !== null) findings.push(...checkPem(`the client certificate of ${setting}`, own.certificate.text));
  }
  return findings;
}

/** What a server says of itself. */
export interface PostgresFacts {
  /** For example 180004. */
  version: number;
  encoding: string;
  hasIcu: boolean;
  fsync: string;
  fullPageWrites: string;
  synchronousCommit: string;
  /** Settings by which the server's log quotes rows, statements or their values; `… of ROLE` if only for one. */
  quoting: string[];
}

/** Exported for its test. */
export const factsSql = /* sql */ `
  select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
    exists (select from pg_collation where collprovider = 'i') as "hasIcu", current_setting('fsync') as fsync,
    current_setting('full_page_writes') as "fullPageWrites",
    current_setting('synchronous_commit') as "synchronousCommit",
    array(select case when role is null then name else format('%s of %s', name, role) end
      from (values ('log_error_verbosity', '{terse}'::text[]),
        -- A connection that is ended is a FATAL error, which quotes its statement.
        ('log_min_error_statement', '{panic}'), ('log_parameter_max_length_on_error', '{0}'),
        ('log_statement', '{none,ddl}'), ('log_min_duration_statement', '{-1}'), ('log_min_duration_sample', '{-1}'),
        ('log_transaction_sample_rate', '{0}'),
        ('log_min_messages', '{debug1,info,notice,warning,error,log,fatal,panic}'),
        ('debug_print_parse', '{off}'), ('debug_print_rewritten', '{off}'), ('debug_print_plan', '{off}'),
        -- Of extensions, which a server may not have.
        ('auto_explain.log_min_duration', '{-1}'), ('pgaudit.log', '{none,ddl,""}'), ('pgaudit.role', '{""}')
      ) as setting (name, good)
      cross join lateral (
        select null as role, current_setting(name, true) as value
        union all
        select coalesce(nullif(setrole, 0)::regrole::text, current_database()), substr(given, length(name) + 2)
        from pg_db_role_setting cross join unnest(setconfig) as given
        where setdatabase in (0, (select oid from pg_database where datname = current_database()))
          and starts_with(given, name || '=')
      ) as given
      where value <> all (good)) as quoting`;

async function checkServer(connection: PrimaryConnection): Promise<Finding[]> {
  const { rows } = await connection.query<PostgresFacts>(factsSql);
  const open = await listPublicFunctions(connection);
  const clock = await checkClock('PostgreSQL', async () => {
    const { rows } = await connection.query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms');
    return rows[0].ms;
  });
  return [
    ...rows.flatMap(checkServerSettings),
    open.length === 0
      ? ok('only who needs them may call functions of large objects and advisory locks')
      : warning(
          `every login may call ${open.length} functions of large objects and advisory locks`,
          'Run the statements of docs/operations/prepare-postgresql.md as a superuser, if the service has one.',
        ),
    clock,
    ...checkPeer('the certificate of PostgreSQL', connection.socket),
  ];
}

export function checkServerSettings(facts: PostgresFacts): Finding[] {
  const { version, encoding, hasIcu, fsync, fullPageWrites, synchronousCommit, quoting } = facts;
  const major = Math.floor(version / 10_000);
  const lossy = Object.entries({
    fsync,
    full_page_writes: fullPageWrites,
    synchronous_commit: synchronousCommit,
  }).flatMap(([name, value]) => (value === 'off' ? [name] : []));
  return [
    expectThat(
      major >= 15,
      `PostgreSQL ${major} is supported`,
      `PostgreSQL ${major} is too old`,
      'Upgrade it to version 15 or newer.',
    ),
    expectThat(
      encoding === 'UTF8',
      'the database is encoded in UTF8',
      `the database is encoded in ${encoding}`,
      'Create a database with the encoding UTF8, and move the data.',
    ),
    expectThat(
      hasIcu,
      'PostgreSQL has ICU',
      'PostgreSQL is built without ICU',
      'Use a build with ICU, as packages have it.',
    ),
    expectThat(
      lossy.length === 0,
      'a committed transaction survives a crash',
      `a crash loses committed events, as these are off: ${lossy.join(', ')}`,
      `Turn on ${lossy.join(', ')}, for the server, the database and the login.`,
    ),
    quoting.length === 0
      ? ok('the log of PostgreSQL quotes no rows and no statements')
      : warning(
          `the log of PostgreSQL may quote rows and statements, with names of families: ${quoting.join(', ')}`,
          'Set them as docs/operations/prepare-postgresql.md says.',
        ),
  ];
}

async function checkRights(connection: PrimaryConnection, { setting, role }: CheckedLogin): Promise<Finding> {
  const { isPowerful, mayCreateRoles, isOwner, groups } = await readLoginRights(connection);
  if (role === 'owner')
    return expectThat(
      isOwner && mayCreateRoles,
      `${setting} is the owner of the database and may create roles`,
      `${setting} is ${isOwner ? 'the owner of the database, and may create no roles' : 'not the owner'}`,
      'Use the owner of docs/operations/prepare-postgresql.md.',
    );
  const expectedGroup = groupRoles[role];
  const others = groups.filter((group) => group !== expectedGroup);
  const excess = [isPowerful ? 'rights of an administrator' : [], isOwner ? 'the database' : [], others].flat();
  return expectThat(
    excess.length === 0 && groups.includes(expectedGroup),
    `${setting} has the rights of its app and no others`,
    excess.length === 0 ? `${setting} lacks the role ${expectedGroup}` : `${setting} also has ${excess.join(', ')}`,
    'Run the migrations, which give each login its rights, and revoke what it has besides.',
  );
}

async function checkSchema(connection: PrimaryConnection, setting: string): Promise<Finding> {
  return expectThat(
    await isSchemaCurrent(connection),
    `the schema that ${setting} sees is that of this version`,
    `the schema that ${setting} sees is older than this version`,
    'Run the migrations: the chart’s Job, or node apps/migrate/main.ts.',
  );
}
