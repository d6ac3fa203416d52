import type { Database, OrgEvent, Transaction } from '../../../apps/clients/receiver-typescript/src/index.ts';

type Values = readonly (string | number)[];

/** What a mutation does to a statement of the kit: replaces its values, or says how many rows it changed. */
type Change = (sql: string, values: Values, event: OrgEvent) => Values | number;

const concerns = (table: string, sql: string) => sql.includes(table);

/** Each takes one guarantee away, below the kit: in what its statements do. */
export const mutations: Record<string, Change> = {
  /** Each statement commits by itself. */
  'no transaction': (_sql, values) => values,
  'no memory of events': (sql, values) => (concerns('org_api_event', sql) ? 1 : values),
  'no order': (sql, values) => (concerns('org_api_subject', sql) ? 1 : values),
  'order per grant': (_sql, values, event) =>
    values.map((value) =>
      String(value).startsWith('seat:') ? `grant:${'grantId' in event.data && event.data.grantId}` : value,
    ),
  'order by sequence': (sql, values, event) =>
    concerns('org_api_subject', sql)
      ? values.map((value) => (value === Date.parse(event.createdAt) ? 0 : value))
      : values,
};

/** Returns a database with a mutation, or itself without one. */
export function mutate(database: Database, name: string, body: Buffer): Database {
  const change = mutations[name];
  if (change === undefined) return database;
  const run = async (transaction: Transaction, sql: string, values: Values): Promise<number> => {
    const changed = change(sql, values, JSON.parse(body.toString()) as OrgEvent);
    return typeof changed === 'number' ? changed : transaction.execute(sql, changed);
  };
  if (name !== 'no transaction')
    return {
      transaction: (work) =>
        database.transaction((transaction) => work({ execute: (sql, values) => run(transaction, sql, values) })),
    };
  return {
    transaction: (work) =>
      work({ execute: (sql, values) => database.transaction((transaction) => run(transaction, sql, values)) }),
  };
}
