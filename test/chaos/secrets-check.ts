import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Connection, Client as TemporalClient } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Redis } from 'ioredis';
import { escapeIdentifier, type Pool } from 'pg';
import { getStateFolder } from '#test/run-folder.ts';
import { createSearch, listForms, type Needle } from './needles.ts';

/** Values that a run's stores and logs must not contain. */
export interface Forbidden {
  /** Signing secrets, `whsec_…`. */
  signingSecrets: readonly string[];
  apiKeys: readonly string[];
  /** A part of every family's name. */
  nameMark: string;
  /** Values that only bodies contain. */
  bodyParts: readonly string[];
}

/** Number of bytes searched, of each kind. */
export type Searched = Record<'postgres' | 'redis' | 'logs' | 'histories' | 'temporalStore', number>;

/**
 * Searches everything that a run wrote: PostgreSQL, Redis, every log, every workflow's history and
 * Temporal's store on disk. Signing secrets and API keys may be nowhere; names and bodies may only
 * be in their columns of PostgreSQL. Returns each find as a sentence that does not contain the
 * value.
 */
export async function findSecrets(options: {
  forbidden: Forbidden;
  pool: Pool;
  redisUrl: string;
  temporal: { address: string; namespace: string };
  folder: string;
}): Promise<{ problems: string[]; searched: Searched; workflows: number }> {
  const { forbidden, pool, redisUrl, temporal, folder } = options;
  const secrets = secretNeedles(forbidden);
  const names = listForms('a family’s name', Buffer.from(forbidden.nameMark));
  const bodies = forbidden.bodyParts.flatMap((part) => listForms('a part of a body', Buffer.from(part)));
  const inDatabase = createSearch(secrets);
  const elsewhereInDatabase = createSearch([...secrets, ...names]);
  const everywhereElse = createSearch([...secrets, ...names, ...bodies]);
  const searched: Searched = { postgres: 0, redis: 0, logs: 0, histories: 0, temporalStore: 0 };
  const problems: string[] = [];
  const look = (kind: keyof Searched, place: string, haystack: Buffer, search: (haystack: Buffer) => string[]) => {
    searched[kind] += haystack.length;
    for (const name of search(haystack)) problems.push(`${name} was found in ${place}`);
  };

  for await (const { column, value } of readDatabase(pool)) {
    look('postgres', `PostgreSQL, ${column}`, value, column === 'family.name' ? inDatabase : elsewhereInDatabase);
  }
  for await (const { key, value } of readRedis(redisUrl)) look('redis', `Redis, ${key}`, value, everywhereElse);
  for (const file of listLogs(folder))
    look('logs', `the log ${path.basename(file)}`, readFileSync(file), everywhereElse);
  for (const file of listStore(folder)) look('temporalStore', 'Temporal’s store', readFileSync(file), everywhereElse);
  let workflows = 0;
  for await (const history of readHistories(temporal)) {
    workflows += 1;
    for (const form of history.forms) look('histories', `the history ${history.workflowId}`, form, everywhereElse);
  }
  return { problems: [...new Set(problems)], searched, workflows };
}

function secretNeedles({ signingSecrets, apiKeys }: Forbidden): Needle[] {
  return [
    ...signingSecrets.flatMap((secret) => {
      const encoded = secret.replace(/^whsec_/, '');
      const name = 'a signing secret';
      return [...listForms(name, Buffer.from(encoded)), ...listForms(name, Buffer.from(encoded, 'base64'))];
    }),
    ...apiKeys.flatMap((key) => listForms('an API key', Buffer.from(key))),
  ];
}

/**
 * Returns every column that can hold text or bytes, one value per column: all its rows as bytes.
 */
async function* readDatabase(pool: Pool): AsyncGenerator<{ column: string; value: Buffer }> {
  const { rows: columns } = await pool.query<{ schema: string; table: string; column: string; type: string }>(
    `select n.nspname as schema, c.relname as "table", a.attname as "column", t.typname as type
     from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
       join pg_type t on t.oid = a.atttypid
     where c.relkind in ('r', 'p') and not c.relispartition and a.attnum > 0 and not a.attisdropped
       and n.nspname not in ('pg_catalog', 'information_schema')
     order by 1, 2, a.attnum`,
  );
  for (const { schema, table, column, type } of columns) {
    const [from, value] = [`${escapeIdentifier(schema)}.${escapeIdentifier(table)}`, escapeIdentifier(column)];
    const bytes = type === 'bytea' ? value : `convert_to(${value}::text, 'UTF8')`;
    const { rows } = await pool.query<{ value: Buffer | null }>(
      `select string_agg(${bytes}, '\\x0a'::bytea) as value from ${from}`,
    );
    if (rows[0]?.value) yield { column: `${table}.${column}`, value: rows[0].value };
  }
}

async function* readRedis(url: string): AsyncGenerator<{ key: string; value: Buffer }> {
  const redis = new Redis(url);
  try {
    for await (const keys of redis.scanBufferStream()) {
      for (const key of keys as Buffer[]) {
        yield { key: 'a key’s name', value: key };
        const value = await redis.dumpBuffer(key);
        if (value !== null) yield { key: 'a value', value };
      }
    }
  } finally {
    redis.disconnect();
  }
}

/** The logs of servers and apps. */
function listLogs(folder: string): string[] {
  return listFiles(folder).filter((file) => /(\.log(\.1)?|\/log(\.1)?)$/.test(file) && !file.includes('/data/'));
}

function listStore(folder: string): string[] {
  return listFiles(path.join(getStateFolder(folder), 'temporal')).filter((file) =>
    path.basename(file).startsWith('store.db'),
  );
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'postgres' ? [] : listFiles(file);
    return entry.isFile() ? [file] : [];
  });
}

/** Every workflow's history, as JSON and with decoded payloads. */
async function* readHistories(options: { address: string; namespace: string }) {
  const connection = await Connection.connect({ address: options.address });
  try {
    const client = new TemporalClient({ connection, namespace: options.namespace });
    for await (const { workflowId, history } of client.workflow.list().intoHistories({ concurrency: 5 })) {
      const json = historyToJSON(history as Parameters<typeof historyToJSON>[0]);
      const payloads = [...json.matchAll(/"data": "([^"]*)"/g)].map(([, data = '']) => Buffer.from(data, 'base64'));
      yield { workflowId, forms: [Buffer.from(json), ...payloads] };
    }
  } finally {
    await connection.close();
  }
}
