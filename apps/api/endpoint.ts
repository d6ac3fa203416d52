import type { z } from 'zod';
import type { Scope } from '#domain/contract/scopes.ts';
import { authorized, authorizedInChunks } from '#domain/db/statements/authorized.ts';

/**
 * The declaration of one read: the route, the OpenAPI operation and the one statement come from it.
 */
interface EndpointDeclaration {
  /**
   * The operation's id in the OpenAPI document, the statement's name and, after `api.`, the
   * activity log's action.
   */
  operationId: string;
  /** What follows `/v1/orgs/:orgId`: empty or `/…`. */
  resource: string;
  scope: Scope;
  /** One line for the list of operations. */
  summary: string;
  /** What the answer contains and what it omits. */
  description: string;
  /**
   * The 200 answer, for the OpenAPI document and for tests; in production PostgreSQL's JSON passes
   * through.
   */
  response: z.ZodType;
  /** SQL of the answer's JSON; `$2` is the organization. */
  body: string;
}

export interface Endpoint extends EndpointDeclaration {
  /** The whole statement: key, owner, scope and answer. Values: fingerprints, organization. */
  statement: { name: string; text: string };
  /** The same for a large answer, which arrives in chunks. */
  chunkStatement: { name: string; text: string };
}

/** Declares a read. */
export function endpoint(declaration: EndpointDeclaration): Endpoint {
  return {
    ...declaration,
    statement: { name: declaration.operationId, text: authorized(declaration.scope, declaration.body) },
    chunkStatement: {
      name: `${declaration.operationId}InChunks`,
      text: authorizedInChunks(declaration.scope, declaration.body),
    },
  };
}
