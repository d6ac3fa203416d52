import {
  type AnyEntity,
  type Dictionary,
  type EntityData,
  isRaw,
  LockMode,
  type LoggingOptions,
  type QueryResult,
  type Raw,
  raw,
  type Transaction,
} from '@mikro-orm/core';
import { PostgreSqlConnection, PostgreSqlDriver, PostgreSqlPlatform } from '@mikro-orm/postgresql';
import { NativeQueryBuilder, PostgreSqlNativeQueryBuilder } from '@mikro-orm/sql';
import { CompiledQuery } from 'kysely';

/**
 * MikroORM's PostgreSQL driver with two changes (ADR 0104):
 *
 * - Values are bound. MikroORM 7 writes them into the SQL text, where the server's log and
 *   `pg_stat_activity` would show them.
 * - `LockMode.PESSIMISTIC_WRITE` is `for no key update`, which allows the check of foreign keys
 *   that refer to the row. With `for update`, a change of a webhook would delay every event for it.
 */
export class Driver extends PostgreSqlDriver {
  protected override readonly platform = new Platform();
  protected override readonly connection = new BindingConnection(this.config);
}

class Platform extends PostgreSqlPlatform {
  override createNativeQueryBuilder(): PostgreSqlNativeQueryBuilder {
    return new QueryBuilder(this);
  }
}

type Statement = string | NativeQueryBuilder | Raw;
type Result = QueryResult | EntityData<AnyEntity> | EntityData<AnyEntity>[];

class BindingConnection extends PostgreSqlConnection {
  override async execute<T extends Result = EntityData<AnyEntity>[]>(
    statement: Statement,
    params: readonly unknown[] | Dictionary<unknown> = [],
    method: 'all' | 'get' | 'run' = 'all',
    transaction?: Transaction,
    _log?: LoggingOptions,
  ): Promise<T> {
    await this.ensureConnection();
    const { text, values } = bind(this.platform as Platform, statement, params);
    const connection = (transaction ?? this.getClient()) as ReturnType<typeof this.getClient>;
    return this.transformRawResult<T>(await connection.executeQuery(CompiledQuery.raw(text, values)), method);
  }

  /** @throws always, because MikroORM would write the values into the text. */
  override stream(): never {
    throw new Error('a statement cannot be streamed through MikroORM, which would not bind its values');
  }
}

/** Returns the statement with `$1`, `$2`… and their values. One that has them keeps them. */
function bind(platform: Platform, statement: Statement, params: readonly unknown[] | Dictionary<unknown>) {
  const fragment = statement instanceof NativeQueryBuilder ? statement.toRaw() : statement;
  const { sql, params: given } = isRaw(fragment) ? fragment : raw(fragment, params as unknown[]);
  if (!sql.includes('?')) return { text: sql, values: given };
  const values: unknown[] = [];
  const toPlaceholder = (value: unknown): string => {
    if (isRaw(value)) return binder.formatQuery(value.sql, value.params);
    if (Array.isArray(value)) return value.map(toPlaceholder).join(', ');
    return `$${values.push(toBound(value))}`;
  };
  // MikroORM's own scanner of placeholders, with the quoting of values replaced.
  const binder: Platform = Object.create(platform, { quoteValue: { value: toPlaceholder } });
  return { text: binder.formatQuery(sql, given), values };
}

function toBound(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return value;
  return JSON.stringify(value);
}

class QueryBuilder extends PostgreSqlNativeQueryBuilder {
  override addLockClause(): void {
    super.addLockClause();
    if (this.options.lockMode !== LockMode.PESSIMISTIC_WRITE) return;
    this.parts = this.parts.map((part) => (part === 'for update' ? 'for no key update' : part));
  }
}
