import type { Middleware, ParameterizedContext } from 'koa';
import type { Pool } from 'pg';
import { ApiError } from '#domain/contract/errors.ts';
import { type AuthorizedRow, identifiedKeySql } from '#domain/db/statements/authorized.ts';
import { clientAddress } from '#runtime/address.ts';
import { databaseFault } from '#runtime/database-fault.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import type { ActivityWriter } from './activity-writer.ts';
import type { SharedChunks } from './answer-body.ts';
import type { AnswerMemory } from './answer-memory.ts';
import type { Endpoint } from './endpoint.ts';
import { createGate, type GateDependencies } from './gate.ts';
import { matchesEtag } from './if-none-match.ts';
import { setPrivate } from './keyed-headers.ts';
import type { ReadState } from './read-state.ts';
import { createRouter, type Route } from './routes.ts';
import { sendChunks } from './send-chunks.ts';
import { refusalOf } from './verdicts.ts';

/** What the reads need; `app.ts` opens it all. */
export interface ReadDependencies extends GateDependencies {
  endpoints: readonly Endpoint[];
  pool: Pool;
  activity: ActivityWriter;
  memory: AnswerMemory;
}

type Ctx = ParameterizedContext<ReadState>;

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The nine reads, and every path that is none of ours. The only place that knows both Koa's context
 * and the domain.
 *
 * A read, in order (design, section 5): bearer, limiter (one round trip to Redis), the one
 * statement (one to PostgreSQL), verdict, the line in the activity log (a share of one insert),
 * answer. No line, no answer.
 */
export function mountReads(deps: ReadDependencies): Middleware<ReadState> {
  const { pool, activity, memory, tracing, trustedProxies } = deps;
  const findRoute = createRouter(deps.endpoints);
  const gate = createGate(deps);

  async function answerRead(ctx: Ctx, { endpoint, orgIdText }: Route): Promise<void> {
    const prints = await gate.admit(ctx);
    const malformed = findShapeProblem(orgIdText, ctx.querystring);
    const organizationId = malformed === null ? orgIdText.toLowerCase() : null;
    const reading = {
      print: prints.at(-1) as Buffer,
      organizationId,
      operationId: endpoint.operationId,
      answer: ctx.res as GuardedAnswer,
    };
    const { row, content } = await memory.read(reading, (room) =>
      ask(endpoint.statement, [prints, organizationId, room]),
    );
    if (row === null)
      throw gate.refuseAuthentication(ctx, new ApiError('invalid_api_key', 'This API key is not known here.'));
    note(ctx, row);
    if (content === null) throw await refuseKey(ctx, endpoint, row, malformed);
    const status = matchesEtag(ctx.get('If-None-Match'), content.etag) ? 304 : 200;
    await record(ctx, row, status, null);
    ctx.set('ETag', content.etag);
    ctx.status = status;
    if (status === 200) send(ctx, content.body, content.bytes);
  }

  /** The recorded refusal of a known key. */
  async function refuseKey(
    ctx: Ctx,
    endpoint: Endpoint,
    row: AuthorizedRow,
    malformed: string | null,
  ): Promise<ApiError> {
    // A null body with a good verdict: the organization went between two look-ups of one snapshot,
    // which cannot happen.
    const verdict = row.verdict === 'ok' ? 'no_organization' : row.verdict;
    const refusal = refusalOf(verdict, endpoint.scope, malformed ?? '');
    await record(ctx, row, refusal.status, refusal.code);
    return refusal.code === 'invalid_api_key' ? gate.refuseAuthentication(ctx, refusal) : refusal;
  }

  /**
   * Another method, or a path that is none of ours. A key opens nothing here, but its use is
   * recorded like any other.
   */
  async function refuseOther(ctx: Ctx, route: Route | null): Promise<never> {
    const bearer = gate.bearerKind(ctx);
    const refusal = refusalOfOther(route, bearer !== 'none');
    if (bearer === 'genuine') {
      const row = await ask({ name: 'identifyKey', text: identifiedKeySql }, [await gate.admit(ctx)]);
      if (row !== null) {
        note(ctx, row);
        await record(ctx, row, refusal.status, refusal.code);
      }
    }
    if (route !== null) ctx.set('Allow', 'GET');
    throw refusal;
  }

  /** Runs a statement about a key; null when there is no such key. */
  async function ask(statement: Endpoint['statement'], values: unknown[]): Promise<AuthorizedRow | null> {
    const { rows } = await tracing
      .span('statement', () => pool.query<AuthorizedRow>({ ...statement, values }))
      .catch((cause: unknown) => {
        throw databaseFault(cause);
      });
    return rows[0] ?? null;
  }

  function note(ctx: Ctx, row: AuthorizedRow): void {
    ctx.state.keyId = row.keyId;
    ctx.state.organizationId = row.organizationId;
    if (row.expiresAt !== null) ctx.set('Key-Expires', row.expiresAt);
  }

  async function record(ctx: Ctx, row: AuthorizedRow, status: number, code: string | null): Promise<void> {
    const { requestId: id, operation } = ctx.state;
    const { keyId } = row;
    const address = clientAddress(ctx.req, trustedProxies);
    const use = { id, keyId, action: `api.${operation}`, status, code, address };
    await tracing
      .span('activity', () => activity.record(use))
      .catch((cause: unknown) => {
        throw databaseFault(cause);
      });
  }

  return async (ctx) => {
    const route = findRoute(ctx.path);
    ctx.state.operation = route?.endpoint.operationId ?? 'none';
    setPrivate(ctx);
    if (route !== null && ctx.method === 'GET') await answerRead(ctx, route);
    else await refuseOther(ctx, route);
  };
}

/**
 * A small answer goes to the socket in one piece; a large one in chunks, as its client takes them.
 */
function send(ctx: Ctx, body: string | SharedChunks, bytes: number): void {
  ctx.set('Content-Type', 'application/json');
  if (typeof body === 'string') ctx.body = body;
  else sendChunks(ctx, body.partsFor(ctx.res as GuardedAnswer), bytes);
}

/**
 * What is wrong with the shape of a read's request, in a sentence, or null. The reads take no query
 * parameters, and one that a partner believes in (`?status=active`) and the server ignores would
 * give an answer to another question; so there is none that passes.
 */
function findShapeProblem(orgIdText: string, query: string): string | null {
  if (!uuidForm.test(orgIdText)) return 'The organization’s id in the path is not a UUID.';
  return query === '' ? null : 'This read takes no query parameters.';
}

function refusalOfOther(route: Route | null, isKey: boolean): ApiError {
  if (route === null) return new ApiError('not_found', 'There is nothing at this path.');
  if (isKey)
    return new ApiError(
      'api_key_not_accepted',
      'API keys open the GET requests of the organization API and nothing else.',
    );
  return new ApiError('method_not_allowed', 'Only GET is possible here.');
}
