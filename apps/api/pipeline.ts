import Router, { type RouterContext } from '@koa/router';
import type { Middleware, Next } from 'koa';
import type { Pool } from 'pg';
import { apiError } from '#domain/contract/errors.ts';
import { identifiedKeySql, type KeyRow } from '#domain/db/statements/authorized.ts';
import { clientAddress } from '#runtime/address.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import type { ActivityWriter } from './activity-writer.ts';
import { type LargeBodies, matchesEtag } from './body.ts';
import { type BoundedReads, readWaitMs } from './bounded-reads.ts';
import type { Endpoint } from './endpoints.ts';
import { createGate, type GateDependencies } from './gate.ts';
import type { ReadContext, ReadState, RequestContext } from './state.ts';

/** What the reads need; `app.ts` opens it. */
interface ReadDependencies extends GateDependencies {
  endpoints: readonly Endpoint[];
  pool: Pool;
  activity: ActivityWriter;
  reads: BoundedReads;
  largeBodies: LargeBodies;
}

/**
 * Returns the router of the nine reads, and after it the middleware that answers every other
 * request. Paths match exactly: letter case, trailing slash, no escapes.
 */
export function createReads(deps: ReadDependencies): Middleware[] {
  const { endpoints, pool, activity, reads, largeBodies, tracing, trustedProxies } = deps;
  const gate = createGate(deps);
  const router = new Router<ReadState>({ sensitive: true, strict: true });
  for (const endpoint of endpoints) {
    const pipeline = [
      startRead(endpoint),
      gate.requireKey,
      gate.limitCalls,
      checkRequest,
      runStatement,
      refuseKey,
      recordUse,
      sendAnswer,
    ];
    router.register(`/v1/orgs/:orgId${endpoint.resource}`, ['GET'], pipeline, { name: endpoint.operationId });
  }

  /** Runs the read's one statement: key, creator, scope, and the answer as JSON. */
  async function runStatement(ctx: ReadContext, next: Next): Promise<void> {
    const { fingerprints, pathOrganizationId: organizationId, endpoint } = ctx.state;
    const response = ctx.res as GuardedAnswer;
    const deadlineMs = performance.now() + readWaitMs;
    const { key: row, content } = await reads.read({ endpoint, fingerprints, organizationId, response, deadlineMs });
    if (row === null) {
      throw gate.refuseAuthentication(ctx, apiError('unknown_key'));
    }
    noteKey(ctx, row);
    ctx.state.key = row;
    ctx.state.content = content;
    return next();
  }

  /** Refuses what the statement did not authorize. The refusal is recorded as a use of the key. */
  function refuseKey(ctx: ReadContext, next: Next): Promise<void> {
    return ctx.state.content === null ? recordRefusal(ctx) : next();
  }

  async function recordRefusal(ctx: ReadContext): Promise<never> {
    const { endpoint, key, malformation } = ctx.state;
    // A body without a good decision is impossible within one snapshot, and so is its opposite.
    const decision = key.decision === 'ok' ? 'no_organization' : key.decision;
    const refusal = apiError(decision === 'malformed' ? malformation : decision, { scope: endpoint.scope });
    await record(ctx, key, refusal.status, refusal.code);
    throw refusal.code === 'invalid_api_key' ? gate.refuseAuthentication(ctx, refusal) : refusal;
  }

  /** Commits the activity row. A request is answered only after that. */
  async function recordUse(ctx: ReadContext, next: Next): Promise<void> {
    const { key, content } = ctx.state;
    const isUnchanged =
      content !== null && (content.body === null || matchesEtag(ctx.get('If-None-Match'), content.etag));
    const status = isUnchanged ? 304 : 200;
    await record(ctx, key, status, null);
    ctx.status = status;
    return next();
  }

  /** Sends a small body in one piece, and a large one in chunks as its client reads them. */
  function sendAnswer(ctx: ReadContext): void {
    const { content } = ctx.state;
    if (content === null) return;
    ctx.set('ETag', content.etag);
    if (content.body === null || ctx.status === 304) return;
    ctx.set('Content-Type', 'application/json');
    const { body } = content;
    if (typeof body === 'string') ctx.body = body;
    else largeBodies.send(ctx, body.chunksFor(ctx.res as GuardedAnswer), body.bytes);
  }

  /**
   * Answers another method or an unknown path. A genuine key is not accepted here, but its use is
   * recorded.
   */
  async function refuseOther(ctx: RequestContext): Promise<void> {
    const [route] = router.match(ctx.path, 'GET').path;
    ctx.state.operation = route?.name ?? 'none';
    setCacheHeaders(ctx);
    const bearer = gate.bearerKind(ctx);
    const isKnown = route !== undefined || ctx.method === 'CONNECT'; // which names no path
    const withKey = bearer === 'none' ? 'other_method' : 'key_with_other_method';
    const refusal = apiError(isKnown ? withKey : 'unknown_path');
    if (bearer === 'genuine') {
      const prints = gate.identifyKey(ctx);
      await gate.takeCall(ctx, prints);
      const statement = { name: 'identifyKey', text: identifiedKeySql, values: [prints] };
      const [row] = (await tracing.span('statement', () => pool.query<KeyRow>(statement))).rows;
      if (row !== undefined) {
        noteKey(ctx, row);
        await record(ctx, row, refusal.status, refusal.code);
      }
    }
    if (isKnown) ctx.set('Allow', 'GET');
    throw refusal;
  }

  async function record(ctx: RequestContext, row: KeyRow, status: number, code: string | null): Promise<void> {
    const use = {
      id: ctx.state.requestId,
      keyId: row.keyId,
      action: `api.${ctx.state.operation}`,
      status,
      code,
      address: clientAddress(ctx.req, trustedProxies),
    };
    await tracing.span('activity', () => activity.record(use));
  }

  const routes = router.routes() as Middleware;
  return [
    // The router would pass HEAD to the routes of GET; the API refuses it like any other method.
    (ctx, next) => (ctx.method === 'GET' ? routes(ctx, next) : next()),
    refuseOther as Middleware,
  ];
}

function startRead(endpoint: Endpoint) {
  return (ctx: ReadContext, next: Next): Promise<void> => {
    ctx.state.endpoint = endpoint;
    ctx.state.operation = endpoint.operationId;
    setCacheHeaders(ctx);
    return next();
  };
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Checks the organization's id in the path, as it was sent, and that there is no query: a parameter
 * that a partner relies on (`?status=active`) and the server ignores would give a wrong answer.
 *
 * A malformed request is not refused here. The statement runs without an organization, so that a
 * revoked key is reported first and the refusal is recorded as a use of the key.
 */
function checkRequest(ctx: ReadContext, next: Next): Promise<void> {
  const [orgId = ''] = (ctx as unknown as RouterContext).captures ?? [];
  const isUuid = uuidForm.test(orgId);
  const isValid = isUuid && ctx.querystring === '';
  ctx.state.pathOrganizationId = isValid ? orgId.toLowerCase() : null;
  ctx.state.malformation = isUuid ? 'query_sent' : 'not_a_uuid';
  return next();
}

function noteKey(ctx: RequestContext, row: KeyRow): void {
  ctx.state.keyId = row.keyId;
  ctx.state.organizationId = row.organizationId;
  (ctx.res as GuardedAnswer).keepConnection();
  if (row.expiresAt !== null) ctx.set('Key-Expires', row.expiresAt);
}

/** Keeps answers out of shared caches, and makes others ask again: a key may have been revoked. */
function setCacheHeaders(ctx: RequestContext): void {
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.set('Vary', 'Authorization');
}
