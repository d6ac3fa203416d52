import type { ParameterizedContext } from 'koa';
import type { KeyRow } from '#domain/db/statements/authorized.ts';
import type { ReadResult } from './bounded-reads.ts';
import type { Endpoint } from './endpoints.ts';

/** What the log line of every request shows. `requestId` is also the id of its activity row. */
export interface RequestState {
  requestId: string;
  operation: string;
  organizationId?: string;
  keyId?: string;
  code?: string;
  limitLeft?: number;
}

/** What the middleware of a read has found, in the order of the pipeline. */
export interface ReadState extends RequestState {
  endpoint: Endpoint;
  /** The key's fingerprint under each pepper, oldest last. */
  fingerprints: Buffer[];
  /** The organization of the path; null when the request is malformed. */
  pathOrganizationId: string | null;
  /** Why the request is malformed, when it is. */
  malformation: 'not_a_uuid' | 'query_sent';
  key: KeyRow;
  content: ReadResult['content'];
}

export type RequestContext = ParameterizedContext<RequestState>;
export type ReadContext = ParameterizedContext<ReadState>;
