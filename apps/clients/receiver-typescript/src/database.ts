/** A transaction of your database. Ports add their own connection, for your statements. */
export interface Transaction {
  /** Runs a statement with `?` for each value, and returns how many rows it inserted, changed or deleted. */
  execute(sql: string, values: readonly (string | number)[]): Promise<number>;
}

/** Your database: the port that `receive` works with. */
export interface Database<T extends Transaction = Transaction> {
  /** How it ignores a row that is there already; `on conflict do nothing` when it is absent. */
  dialect?: 'mysql';
  /** Commits what `work` did, and undoes all of it when `work` throws. */
  transaction<Result>(work: (transaction: T) => Promise<Result>): Promise<Result>;
}

/** The three tables, for your migrations. PostgreSQL, MySQL, MariaDB and SQLite take them as they are. */
export const schema: readonly string[] = [
  `create table if not exists org_api_event (
    id varchar(64) primary key, received_at bigint not null)`,
  `create table if not exists org_api_sequence (
    endpoint varchar(64) not null, sequence bigint not null, received_at bigint not null,
    primary key (endpoint, sequence))`,
  `create table if not exists org_api_subject (
    id varchar(128) primary key, happened_at bigint not null, endpoint varchar(64) not null, sequence bigint not null,
    event_id varchar(64) not null, received_at bigint not null)`,
];

/**
 * Lists the numbers of `webhook-sequence` that never came, by webhook: `endpoint`, `first`, `last`. Redeliver those
 * events in the console. A number that is on its way is listed too, so ask again after a while. The numbers are
 * `bigint`, which node-postgres returns as text.
 */
export const gapsSql = `
  select endpoint, sequence + 1 as first, following - 1 as last from (
    select endpoint, sequence, lead(sequence) over (partition by endpoint order by sequence) as following
    from org_api_sequence) numbers
  where following > sequence + 1 order by endpoint, sequence`;

const retentionMs = 90 * 24 * 60 * 60 * 1_000;

/**
 * Forgets what the service cannot send again: what is older than 90 days. Run it once a day.
 *
 * Of each webhook the last number of that age stays, so that its removal shows no gap.
 */
export async function forget<T extends Transaction>(database: Database<T>, nowMs = Date.now()): Promise<void> {
  const before = nowMs - retentionMs;
  await database.transaction(async (transaction) => {
    await transaction.execute('delete from org_api_event where received_at < ?', [before]);
    await transaction.execute('delete from org_api_subject where received_at < ?', [before]);
    await transaction.execute(
      `delete from org_api_sequence where exists (
         select 1 from (
           select endpoint, max(sequence) as newest from org_api_sequence where received_at < ? group by endpoint) old
         where old.endpoint = org_api_sequence.endpoint and old.newest > org_api_sequence.sequence)`,
      [before],
    );
  });
}

/** Inserts a row unless its key is there. Returns whether it did. */
export async function insertOnce<T extends Transaction>(
  { dialect }: Database<T>,
  transaction: T,
  { table, values }: { table: string; values: readonly (string | number)[] },
): Promise<boolean> {
  const marks = values.map(() => '?').join(', ');
  const sql =
    dialect === 'mysql'
      ? `insert ignore into ${table} values (${marks})`
      : `insert into ${table} values (${marks}) on conflict do nothing`;
  return (await transaction.execute(sql, values)) === 1;
}
