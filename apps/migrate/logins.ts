import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { groupRoles, type LoginRole } from '#domain/db/login-rights.ts';
import { connectionParameters, type PostgresServer } from '#domain/db/server.ts';

/** The login of an app: user and password of the server that the app connects to. */
export interface Login {
  role: LoginRole;
  server: PostgresServer;
}

/**
 * What PostgreSQL, its poolers and every client read in one way. They prepare other characters of a
 * password each by its own part of RFC 4013: a soft hyphen or a joiner is removed or kept.
 */
const passwordForm = /^[ -~]+$/;
/** PostgreSQL cuts a longer name off, so two logins could become one with the rights of both. */
const userForm = /^[!-~]{1,63}$/;

/**
 * Returns the login of a URL, which can be created, and be used by every client.
 *
 * @throws Error that names the login by its app, and repeats nothing of its URL.
 */
export function getLogin({ role, server }: Login, owner: string | undefined) {
  const { user, password } = server;
  if (password === null) throw new Error(`the database URL of the ${role} names no password; give it one`);
  if (user === owner) throw new Error(`the ${role} would connect as the database's owner; give it a separate login`);
  if (!userForm.test(user))
    throw new Error(
      `the login of the ${role} has a name that is longer than 63 characters, or has spaces or other characters ` +
        'than ASCII letters, digits and symbols; give it another name',
    );
  if (!passwordForm.test(password))
    throw new Error(
      `the password of the ${role}'s login has other characters than ASCII letters, digits, symbols and spaces, ` +
        'which PostgreSQL and its clients read differently; give it another password',
    );
  return { role, user, password };
}

/** SQLSTATEs when two databases of one server change the same role at once; a retry succeeds. */
const concurrentRoleChange = new Set(['XX000', '42710', '23505']);

/**
 * Creates a login, or updates its password and rights, over the owner's connection.
 *
 * Roles belong to the server, so CONNECT is revoked from PUBLIC and granted to each login for its
 * own database: a login of one region cannot enter another region's database on the same server.
 * No login has TEMPORARY: only the import uses temporary tables, as the owner.
 *
 * The connection parameters become the login's defaults too, for a pooler that drops those of a
 * connection, and for a person who uses the login. A connection may replace them.
 *
 * @throws Error as `getLogin`.
 */
export async function ensureLogin(owner: pg.Client, login: Login): Promise<void> {
  const { role, user, password } = getLogin(login, owner.user);
  const name = pg.escapeIdentifier(user);
  const group = pg.escapeIdentifier(groupRoles[role]);
  const database = pg.escapeIdentifier(owner.database ?? '');
  const verifier = pg.escapeLiteral(scramVerifier(password));
  await retried(() =>
    owner.query(`do $$ begin
      if not exists (select from pg_roles where rolname = ${pg.escapeLiteral(user)})
        then create role ${name} login; end if;
    end $$`),
  );
  await retried(() => owner.query(`alter role ${name} login password ${verifier}`));
  await retried(() => owner.query(buildDefaultsSql(name)));
  await retried(() => owner.query(`grant ${group} to ${name}`));
  await retried(() => owner.query(`revoke connect, temporary on database ${database} from public`));
  await retried(() => owner.query(`grant connect on database ${database} to ${name}`));
}

/** How long a transaction of a login may last, where the server has that limit (17 and newer). */
const transactionTimeout = '15min';

/** Returns the statements that make the connection parameters the defaults of a role. */
function buildDefaultsSql(name: string): string {
  const settings = Object.entries(connectionParameters).map(
    ([parameter, value]) => `alter role ${name} set ${parameter} to ${pg.escapeLiteral(value)};`,
  );
  return `do $$ begin
    ${settings.join('\n')}
    if exists (select from pg_settings where name = 'transaction_timeout')
      then alter role ${name} set transaction_timeout to '${transactionTimeout}'; end if;
  end $$`;
}

async function retried(step: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await step();
      return;
    } catch (error) {
      if (attempt === 10 || !(error instanceof pg.DatabaseError) || !concurrentRoleChange.has(error.code ?? ''))
        throw error;
      await sleep(20 * attempt);
    }
  }
}

/** Returns a password's SCRAM-SHA-256 verifier (RFC 5803): a server may log its statements. */
function scramVerifier(password: string): string {
  const iterations = 4096;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const storedKey = createHash('sha256')
    .update(createHmac('sha256', salted).update('Client Key').digest())
    .digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
