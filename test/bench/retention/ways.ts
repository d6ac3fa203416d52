import type pg from 'pg';
import { type Statements, statements } from './deliver.ts';

/**
 * A way of storing events, deliveries and attempts in partitions, beside the plain tables of the
 * migrations.
 */
export interface Way {
  name: string;
  /** Changes the tables of a migrated, empty database; `partitions` includes the default one. */
  convert: (owner: pg.Client, partitions: number) => Promise<void>;
  /**
   * The statements with conditions for pruning. `floor` is an id below that of every open delivery.
   */
  rewrite: (floor: string) => Statements;
}

const eventIdAt = (moment: Date) =>
  `${moment
    .getTime()
    .toString(16)
    .padStart(12, '0')
    .replace(/^(.{8})/, '$1-')}-0000-0000-000000000000`;
const widthDays = 18;
const dayMs = 86_400_000;

/** Bounds of all but the default partition: one ahead, the current one, and earlier ones. */
function boundsOf(partitions: number): [from: Date, to: Date][] {
  const startMs = Math.floor(Date.now() / dayMs) * dayMs - (partitions - 3) * widthDays * dayMs;
  return Array.from({ length: partitions - 1 }, (_, index) => [
    new Date(startMs + index * widthDays * dayMs),
    new Date(startMs + (index + 1) * widthDays * dayMs),
  ]);
}

/**
 * Replaces the three tables by partitioned ones with the same columns, checks, indexes, triggers
 * and rights. `keys` are the partitioning columns. Primary and unique keys that do not contain
 * them, and foreign keys to them, exist only on the partitions.
 */
async function partitionTables(owner: pg.Client, keys: Record<'event' | 'delivery' | 'delivery_attempt', string>) {
  const { rows: triggers } = await owner.query<{ sql: string }>(
    `select pg_get_triggerdef(oid) as sql from pg_trigger
     where not tgisinternal and tgrelid in ('event'::regclass, 'delivery'::regclass, 'delivery_attempt'::regclass)`,
  );
  const { rows: indexes } = await owner.query<{
    sql: string;
    table: keyof typeof keys;
    columns: string;
    unique: boolean;
  }>(
    `select pg_get_indexdef(i.indexrelid) as sql, c.relname as "table", i.indisunique as "unique",
       (select string_agg(a.attname, ', ' order by k.n) from unnest(i.indkey) with ordinality k (number, n)
         join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number) as columns
     from pg_index i join pg_class c on c.oid = i.indrelid
     where i.indrelid in ('event'::regclass, 'delivery'::regclass, 'delivery_attempt'::regclass)`,
  );
  const tables = Object.keys(keys) as (keyof typeof keys)[];
  for (const table of tables)
    await owner.query(`create table ${table}_new (like ${table} including all excluding indexes)
      partition by range (${keys[table]})`);
  await owner.query('drop table delivery_attempt, delivery, event');
  for (const table of tables) await owner.query(`alter table ${table}_new rename to ${table}`);
  for (const { sql, table, columns, unique } of indexes)
    if (!unique || columns.split(', ').includes(keys[table])) await owner.query(sql);
  for (const { sql } of triggers) await owner.query(sql);
  await owner.query(`alter table delivery add constraint delivery_webhook
    foreign key (organization_id, webhook_id) references webhook`);
  await owner.query('grant select, insert, update on event, delivery, delivery_attempt to org_api_worker');
}

const byEvent: Way = {
  name: 'by event',
  async convert(owner, partitions) {
    await partitionTables(owner, { event: 'id', delivery: 'event_id', delivery_attempt: 'event_id' });
    const add = async (part: number, bounds: string) => {
      await owner.query(`create table event_${part} partition of event ${bounds}`);
      await owner.query(`create table delivery_${part} partition of delivery (constraint delivery_event
        foreign key (organization_id, event_id) references event_${part} (organization_id, id)) ${bounds}`);
      await owner.query(`create unique index on delivery_${part} (organization_id, webhook_id, sequence)
        where sequence is not null`);
      await owner.query(`create table delivery_attempt_${part} partition of delivery_attempt (
        constraint delivery_attempt_delivery foreign key (organization_id, webhook_id, event_id)
          references delivery_${part} (organization_id, webhook_id, event_id)) ${bounds}`);
    };
    await add(0, 'default');
    for (const [index, [from, to]] of boundsOf(partitions).entries())
      await add(index + 1, `for values from ('${eventIdAt(from)}') to ('${eventIdAt(to)}')`);
  },
  rewrite: () => statements,
};

/** Adds a condition to every scan of deliveries, so that PostgreSQL prunes partitions. */
const restrict = (sql: string, condition: (alias: string) => string) =>
  sql
    .replaceAll(/from delivery (\w)\s+where/g, (_, alias) => `from delivery ${alias} where ${condition(alias)} and`)
    .replaceAll(/join delivery d on/g, `join delivery d on ${condition('d')} and`)
    .replaceAll(/(update delivery d\s(?:(?!update)[\s\S])*?\n\s+where) d\./g, `$1 ${condition('d')} and d.`);

const byEventWithFloor: Way = {
  name: 'by event, with a floor',
  convert: byEvent.convert,
  rewrite(floor) {
    const above = (alias: string) => `${alias}.event_id >= '${floor}'`;
    return { ...statements, find: restrict(statements.find, above), claim: restrict(statements.claim, above) };
  },
};

const openApart: Way = {
  name: 'open apart from settled',
  async convert(owner, partitions) {
    await partitionTables(owner, { event: 'id', delivery: 'settled_at', delivery_attempt: 'event_id' });
    const add = async (part: number, byId: string, bySettling: string) => {
      await owner.query(`create table event_${part} partition of event ${byId}`);
      await owner.query(`create table delivery_${part} partition of delivery ${bySettling}`);
      await owner.query(`create unique index on delivery_${part} (organization_id, webhook_id, event_id)`);
      await owner.query(`create table delivery_attempt_${part} partition of delivery_attempt ${byId}`);
    };
    // An open delivery has no time of settlement, and so is in the default partition.
    await add(0, 'default', 'default');
    for (const [index, [from, to]] of boundsOf(partitions).entries()) {
      const byId = `for values from ('${eventIdAt(from)}') to ('${eventIdAt(to)}')`;
      await add(index + 1, byId, `for values from ('${from.toISOString()}') to ('${to.toISOString()}')`);
    }
  },
  rewrite() {
    const isOpen = (alias: string) => `${alias}.settled_at is null`;
    const [find, claim, admit] = [statements.find, statements.claim, statements.admit].map((sql) =>
      restrict(sql, isOpen),
    ) as [string, string, string];
    return { ...statements, find, claim, admit };
  },
};

export const ways = [byEvent, byEventWithFloor, openApart] as const;
