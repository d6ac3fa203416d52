import Router, { type RouterContext } from '@koa/router';
import type { Middleware } from 'koa';
import type { Pool } from 'pg';
import { apiError } from '#domain/contract/errors.ts';
import { clientAddress } from '#runtime/client.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import { chooseEncoding, findEncoding } from './accept-encoding.ts';
import type { AuditLogWriter } from './audit-log-writer.ts';
import type { BodyReader } from './body-reader.ts';
import type { SmallBodyEncoder } from './encode.ts';
import type { Endpoint } from './endpoints.ts';
import { matchesEtag } from './etag.ts';
import { Gate, type GateDependencies } from './gate.ts';
import type { LargeBodySender, SharedBody } from './large-body.ts';
import { identifiedKeySql, type KeyRow } from './reads/authorized.ts';
import type { RequestContext, RequestState } from './request-log.ts';

/** What the reads need; `app.ts` opens it. */
interface ReadDependencies extends GateDependencies {
  endpoints: readonly Endpoint[];
  pool: Pool;
  auditLog: AuditLogWriter;
  bodyReader: BodyReader;
  readWaitMs: number;
  largeBodySender: LargeBodySender;
  smallBodyEncoder: SmallBodyEncoder;
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Malformation = 'not_a_uuid' | 'query_sent';

/** The nine reads, and the response to every request that is none. */
export class ReadRoutes {
  readonly #dependencies: ReadDependencies;
  readonly #gate: Gate;
  /** Paths match exactly: letter case, trailing slash, no escapes. */
  readonly #router = new Router<RequestState>({ sensitive: true, strict: true });
  readonly #routes: Middleware<RequestState>;

  constructor(dependencies: ReadDependencies) {
    this.#dependencies = dependencies;
    this.#gate = new Gate(dependencies);
    for (const endpoint of dependencies.endpoints)
      this.#router.register(`/v1/orgs/:orgId${endpoint.resource}`, ['GET'], (ctx) => this.#read(ctx, endpoint), {
        name: endpoint.operationId,
      });
    this.#routes = this.#router.routes() as Middleware<RequestState>;
  }

  /**
   * Answers a read, and passes other requests on. The router would pass HEAD to the routes of GET;
   * the API rejects it like any other method.
   */
  readonly handle: Middleware<RequestState> = (ctx, next) => (ctx.method === 'GET' ? this.#routes(ctx, next) : next());

  async #read(ctx: RouterContext<RequestState>, endpoint: Endpoint): Promise<void> {
    const { bodyReader, readWaitMs, largeBodySender, smallBodyEncoder } = this.#dependencies;
    const [orgId = ''] = ctx.captures ?? []; // as it was sent; `ctx.params` is decoded
    ctx.state.operation = endpoint.operationId;
    setCacheHeaders(ctx);
    const fingerprints = this.#gate.identifyKey(ctx);
    await this.#gate.countCall(ctx, fingerprints);

    // A malformed request runs too, without an organization, so that a revoked key is reported
    // first and the error is recorded as a use of the key.
    const malformation = findMalformation(orgId, ctx.querystring);
    const organizationId = malformation === null ? orgId.toLowerCase() : null;
    const response = ctx.res as TrackedResponse;
    const deadlineMs = performance.now() + readWaitMs;
    const accepted = chooseEncoding(ctx.get('Accept-Encoding'));
    const address = clientAddress(ctx.req, this.#dependencies.trustedProxies);
    const { encoding: asked } = accepted;
    const request = { endpoint, fingerprints, organizationId, address, response, encoding: asked, deadlineMs };
    const { key, content } = await bodyReader.read(request);
    if (key !== null) noteKey(ctx, key);
    if (key === null || content === null) return this.#rejectKey(ctx, endpoint, key, malformation);

    const { etag, body } = content;
    const isUnchanged = body === null || matchesEtag(ctx.get('If-None-Match'), etag);
    await this.#record(ctx, key, isUnchanged ? 304 : 200, null);
    ctx.status = isUnchanged ? 304 : 200;
    const encoding = findEncoding(accepted, countBytes(body));
    // A strong ETag would have to differ between encodings (RFC 9110, section 8.8.3.3).
    ctx.set('ETag', encoding === null ? etag : `W/${etag}`);
    if (isUnchanged) return;
    ctx.set('Content-Type', 'application/json');
    if (encoding !== null) ctx.set('Content-Encoding', encoding);
    if (typeof body !== 'string') largeBodySender.send(ctx, body.chunksFor(response), body.bytes);
    else ctx.body = encoding === null ? body : await smallBodyEncoder.encode(body, etag, encoding);
  }

  /** Rejects what the statement did not authorize, and records it as a use of the key. */
  async #rejectKey(
    ctx: RequestContext,
    endpoint: Endpoint,
    key: KeyRow | null,
    malformation: Malformation | null,
  ): Promise<never> {
    if (key === null) throw apiError('unknown_key');
    // A good decision without a body is impossible within one snapshot.
    const reason = key.decision === 'ok' ? 'no_organization' : key.decision;
    const error = apiError(reason === 'malformed' ? (malformation ?? 'not_a_uuid') : reason, endpoint);
    await this.#record(ctx, key, error.status, error.code);
    throw error;
  }

  /** Answers another method or an unknown path. A key is not accepted here, but its use is recorded. */
  readonly rejectOther: Middleware<RequestState> = async (ctx) => {
    const [route] = this.#router.match(ctx.path, 'GET').path;
    ctx.state.operation = route?.name ?? 'none';
    setCacheHeaders(ctx);
    const bearer = this.#gate.bearerKind(ctx);
    const isKnown = route !== undefined || ctx.method === 'CONNECT'; // which names no path
    const error = apiError(!isKnown ? 'unknown_path' : bearer === 'none' ? 'other_method' : 'key_with_other_method');
    if (bearer === 'valid_key') {
      const fingerprints = this.#gate.identifyKey(ctx);
      await this.#gate.countCall(ctx, fingerprints);
      const key = await this.#identify(fingerprints);
      if (key !== undefined) {
        noteKey(ctx, key);
        await this.#record(ctx, key, error.status, error.code);
      }
    }
    if (isKnown) ctx.set('Allow', 'GET');
    throw error;
  };

  async #identify(fingerprints: Buffer[]): Promise<KeyRow | undefined> {
    const { pool, tracing } = this.#dependencies;
    const statement = { name: 'identifyKey', text: identifiedKeySql, values: [fingerprints] };
    const { rows } = await tracing.span('statement', () => pool.query<KeyRow>(statement));
    return rows[0];
  }

  /** Commits the audit entry. A request is answered only after that. */
  #record(ctx: RequestContext, { keyId }: KeyRow, status: number, code: string | null): Promise<void> {
    const { auditLog, tracing, trustedProxies } = this.#dependencies;
    const { requestId: id, operation } = ctx.state;
    const address = clientAddress(ctx.req, trustedProxies);
    return tracing.span('audit_log', () =>
      auditLog.record({ id, keyId, action: `api.${operation}`, status, code, address }),
    );
  }
}

/**
 * Returns what is wrong with a request, or null. A parameter that a partner relies on
 * (`?status=active`) and the server ignores would give a wrong response.
 */
function findMalformation(orgId: string, query: string): Malformation | null {
  if (!uuidForm.test(orgId)) return 'not_a_uuid';
  return query === '' ? null : 'query_sent';
}

function noteKey(ctx: RequestContext, { keyId, organizationId, expiresAt }: KeyRow): void {
  ctx.state.keyId = keyId;
  ctx.state.organizationId = organizationId;
  (ctx.res as TrackedResponse).keepConnection();
  if (expiresAt !== null) ctx.set('Key-Expires', expiresAt);
}

/** Returns the bytes of a small body, and infinity for a large one, also when no request needs it (null). */
const countBytes = (body: string | SharedBody | null): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : Number.POSITIVE_INFINITY;

/** Keeps responses out of shared caches, and makes others ask again: a key may have been revoked. */
function setCacheHeaders(ctx: RequestContext): void {
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.set('Vary', 'Authorization, Accept-Encoding');
}
