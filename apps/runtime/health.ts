import type { Middleware } from 'koa';
import type { Pool } from 'pg';
import { isSchemaCurrent } from '#domain/db/schema-version.ts';

interface HealthDependencies {
  pool: Pool;
  isDraining: () => boolean;
}

/**
 * `/livez`: the event loop runs. It asks no other server, so that a database outage restarts no
 * pod. `/readyz`: the schema is current and the pod is not draining.
 *
 * Readiness asks the database until the first success. Otherwise every pod would leave the load
 * balancer together when the database is unavailable, and clients would not get the 503 that asks them to
 * retry.
 */
export function health(dependencies: HealthDependencies): Middleware {
  let schemaSeen = false;

  async function findUnreadiness(): Promise<string | null> {
    if (dependencies.isDraining()) return 'draining';
    if (schemaSeen) return null;
    const problem = await findSchemaProblem(dependencies.pool);
    schemaSeen = problem === null;
    return problem;
  }

  return async (ctx, next) => {
    if (ctx.path !== '/livez' && ctx.path !== '/readyz') return next();
    ctx.state.operation = ctx.path.slice(1);
    ctx.set('Cache-Control', 'no-store');
    const problem = ctx.path === '/livez' ? null : await findUnreadiness();
    ctx.status = problem === null ? 200 : 503;
    ctx.body = problem === null ? { status: 'ok' } : { status: 'unready', reason: problem };
  };
}

/** Returns why a database does not have the schema of this code; null when it has. */
export async function findSchemaProblem(pool: Pool): Promise<string | null> {
  try {
    const isCurrent = await isSchemaCurrent(pool);
    return isCurrent ? null : 'the database’s schema is older than this version; run the migrations';
  } catch (cause) {
    const { code } = cause as { code?: string };
    return `the database cannot be asked for its schema (${code ?? 'no response'})`;
  }
}
