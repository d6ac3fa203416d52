/**
 * Compares a database with its state before, row by row, and says what no login may cause. The
 * comparison runs in the transaction of the calls, as the owner.
 */
import type { Client } from 'pg';

/**
 * What functions may delete, per table, as a condition on the row `b` as it was before. The limits
 * are written out here and not read from the database, because a call could move them.
 */
const mayBeGone: Readonly<Record<string, string>> = {
  audit_entry: `b.at < now() - interval '90 days'`,
  audit_link: `b.entry_at < now() - interval '90 days'`,
  delivery: `b.settled_at < now() - interval '31 days'`,
  delivery_attempt: `b.finished_at < now() - interval '31 days'`,
  event: `b.created_at < now() - interval '31 days'`,
  webhook_secret: 'b.valid_until < now()',
  console_session: `(b.expires_at < now() or b.last_seen_at < now() - interval '30 minutes')`,
  enrolment: 'b.expires_at < now()',
  challenge: 'b.expires_at < now()',
  known_browser: 'b.expires_at < now()',
  sign_in_failure: 'b.expire < extract(epoch from now()) * 1000',
  call_sum: `b.starts_at < now() - interval '3 days'`,
  mail: `b.settled_at < now() - interval '30 days'`,
  notice: `b.at < now() - interval '400 days'`,
  // Unnamed days of erased families that no read needs.
  family_day: `b.day < current_date - 90 and exists (select from before.erasure e
    where e.organization_id = b.organization_id and e.kept_as = b.family_id)`,
  // Folded: the test of the ledger compares the sums.
  ledger_count: 'true',
  ledger_day: 'true',
};

/** The columns that functions may change, per table. */
const mayChange: Readonly<Record<string, readonly string[]>> = {
  audit_entry: ['count', 'address', 'serial'],
  audit_chain: ['length', 'hash', 'dropped_length', 'dropped_hash', 'anchored_length', 'anchored_on'],
  audit_progress: ['linked_to', 'streamed_to', 'claimed_until', 'summed_to', 'summed_at'],
  call_sum: ['calls'],
  retention_floor: ['applied_days', 'applied_delivery_days'],
  event: ['delivery_count', 'rolled_up'],
  delivery: ['rolled_up'],
  delivery_attempt: ['response', 'response_encoding'],
  erasure: ['completed_at', 'logged', 'logged_completed', 'tried_at'],
  grant_end: ['notified_entry_id'],
  mail: [
    'state',
    'attempts',
    'attempted_at',
    'is_ready',
    'due_at',
    'settled_at',
    'reply',
    'address',
    'sealed',
    'facts',
  ],
};

/** In which rows they may, as a condition on the row before (`b`) and after (`t`). */
const mayChangeIf: Readonly<Record<string, string>> = {
  // Responses to events of an erased family, and those that were on their way.
  delivery_attempt: `t.response is null and t.response_encoding is null and exists (select from before.erasure e
    where e.organization_id = b.organization_id and (b.finished_at > e.erased_at or exists (
      select from before.event v join before.client_grant g on g.id = v.subject_id
      where v.organization_id = b.organization_id and v.id = b.event_id and g.family_id = e.kept_as)))`,
};

/** What functions may add, per table, as a condition on the new row `t`. */
const mayAppear: Readonly<Record<string, string>> = {
  // No writer names a person whom the organization does not know, or a later time.
  audit_entry: `t.at <= now() and (t.person_id is null or exists (select from membership m
    where m.organization_id = t.organization_id and m.person_id = t.person_id))`,
  audit_link: 't.entry_at <= now()',
  // To the address of a member or their sign-in, and to no other.
  mail: `exists (select from membership m left join sign_in s on s.person_id = m.person_id
    where m.person_id = t.person_id and coalesce(t.address, m.email) in (m.email, s.email))`,
  notice: `t.at <= now()`,
  // Operational events of notices, and no others.
  event: `t.created_at <= clock_timestamp() and exists (select from notice n where n.organization_id = t.organization_id
    and n.kind = t.type and n.data = (t.body::json -> 'data')::text)`,
  delivery: `t.state = 'queued' and exists (select from event e where e.organization_id = t.organization_id
    and e.id = t.event_id and e.type in ('webhook.failing', 'webhook.suspended', 'key.expiring'))`,
  audit_chain: 'true',
  call_sum: 'true',
  audit_purge: `t.kept_from <= now() - interval '90 days' and t.floor_days = 90`,
  ledger_count: 'true',
  ledger_day: 'true',
};

interface Table {
  name: string;
  key: string[];
}

/**
 * Copies every table into the schema `before`.
 * @returns a function that lists the faults of the open transaction.
 */
export async function keepState(client: Client): Promise<() => Promise<string[]>> {
  const { rows: tables } = await client.query<Table>(
    `select c.relname as name, array(select a.attname::text from pg_index i
       join pg_attribute a on a.attrelid = c.oid and a.attnum = any (i.indkey)
       where i.indrelid = c.oid and i.indisprimary) as key
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by 1`,
  );
  await client.query('create schema before');
  for (const { name } of tables) await client.query(`create table before."${name}" as table public."${name}"`);
  const faultsByTable = new Map(
    tables.filter(({ key }) => key.length > 0).map((table) => [table.name, compareSql(table)]),
  );
  const { rows: partitions } = await client.query<{ name: string }>(
    `select relname as name from pg_class where relispartition and relkind = 'r' order by 1`,
  );
  const names = partitions.map(({ name }) => name);
  return async () => {
    const { rows: touched } = await client.query<{ name: string }>(touchedSql);
    const queries = touched.map(({ name }) => faultsByTable.get(name) ?? `select 'written: ${name}'`);
    const { rows } = await client.query<{ fault: string }>(
      `select fault from (${[lostPartitionsSql, ...queries].join(' union all ')}) as f (fault)`,
      [names],
    );
    return rows.map(({ fault }) => fault);
  };
}

/** The tables that the open transaction wrote or that lost a partition. */
const touchedSql = /* sql */ `
  select distinct coalesce(p.relname, s.relname) as name from pg_stat_xact_user_tables s
  left join pg_inherits i on i.inhrelid = s.relid left join pg_class p on p.oid = i.inhparent
  where s.schemaname = 'public' and s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0
  union select unnest('{audit_entry,audit_link}'::text[])`;

/** `$1` are the partitions before. A month may be gone when it ended before the owner's floor. */
const lostPartitionsSql = /* sql */ `
  select 'partition ' || n from unnest($1::text[]) n where to_regclass('public.' || n) is null
    and (n !~ '^audit_(entry|link)_\\d{4}_\\d{2}$'
      or to_date(right(n, 7), 'YYYY_MM') + interval '1 month' > now() at time zone 'UTC' - interval '90 days')`;

/** Returns a query of the faults of a table. */
function compareSql({ name, key }: Table): string {
  const same = key.map((column) => `b."${column}" = t."${column}"`).join(' and ');
  const changed = (mayChange[name] ?? []).map((column) => ` - '${column}'`).join('');
  const row = `(b.*)::text`;
  const faults = [
    `select 'gone from ${name}: ' || ${row} from before."${name}" b
      where not exists (select from public."${name}" t where ${same})
        and not coalesce(${mayBeGone[name] ?? 'false'}, false)`,
    `select 'changed in ${name}: ' || ${row} from before."${name}" b join public."${name}" t on ${same}
      where (b.*)::text <> (t.*)::text
        and (to_jsonb(b)${changed} <> to_jsonb(t)${changed} or not coalesce(${mayChangeIf[name] ?? 'true'}, false))`,
    `select 'added to ${name}: ' || (t.*)::text from public."${name}" t
      where not exists (select from before."${name}" b where ${same})
        and not coalesce(${mayAppear[name] ?? 'false'}, false)`,
  ];
  return faults.map((fault) => `(${fault} limit 2)`).join(' union all ');
}
