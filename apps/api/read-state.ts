/**
 * What is known of a request beside Koa's own; the request's log line shows it. `requestId` is also
 * the id of its activity line.
 */
export interface ReadState {
  requestId: string;
  operation: string;
  organizationId?: string;
  keyId?: string;
  code?: string;
  limitLeft?: number;
}
