import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import { setupDatabase } from './setup.ts';

/** Arguments of a function, by name. */
export type PlatformValues = Record<string, unknown>;

/**
 * A database with the platform's login. `create` brings an organization by the functions, with a member, a
 * family and a plan of five seats. `errors` are those of all calls.
 */
export async function setupPlatform() {
  const { database, owner, make } = await setupDatabase();
  const connect = async () => {
    const client = new pg.Client({ connectionString: database.urls.platform });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  const client = await connect();
  const errors: pg.DatabaseError[] = [];
  /** Returns what a function returns, or the error as `SQLSTATE code: detail`. */
  const call = (name: string, values: PlatformValues, by: pg.Client = client): Promise<string> => {
    const named = Object.keys(values).map((argument, index) => `${argument} => $${index + 1}`);
    return by.query(`select platform.${name}(${named.join(', ')}) as answer`, Object.values(values)).then(
      ({ rows }) => rows[0].answer,
      (error: pg.DatabaseError) => {
        errors.push(error);
        return `${error.code} ${error.constraint}: ${error.detail}`;
      },
    );
  };
  const create = async (invoiced = 5) => {
    const organization = randomUUID();
    const family = randomUUID();
    const member = `usr_${randomUUID().slice(0, 8)}`;
    const slug = `org-${organization}`;
    const calls: [string, PlatformValues][] = [
      ['put_organization', { organization, name: 'Harbor', slug, kind: 'law_firm' }],
      ['put_member', { organization, member, name: 'Ada', email: 'ada@example.org', roles: ['owner'] }],
      ['put_family', { organization, id: family, name: 'Rossi' }],
    ];
    for (const [name, values] of calls) expect(await call(name, values)).toBe('created');
    expect(await call('put_plan', { organization, invoiced })).toBe(invoiced === 0 ? 'unchanged' : 'changed');
    return { organization, member, family, slug };
  };
  const count = async (table: string) => (await owner.pool.query(`select from ${table}`)).rowCount;
  const listEvents = async (): Promise<string[]> =>
    (await client.query('select type from platform.event order by id')).rows.map(({ type }) => type);
  return { database, owner, make, client, connect, call, errors, create, count, listEvents };
}
