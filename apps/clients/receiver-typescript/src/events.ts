/** The events of org-api. A type, member or value that is not here may come at any time. */
export type OrgEvent =
  | Envelope<'client.started', { grantId: string; kind: GrantKind }>
  | Envelope<'client.ended', { grantId: string; kind: GrantKind; reason: Open<'ended' | 'moved'> }>
  | Envelope<'seat.given', { seatId: string; grantId: string }>
  | Envelope<'seat.ended', { seatId: string; grantId: string; reason: SeatEndReason }>
  | Envelope<'webhook.failing', { webhookId: string; failingSince: string }>
  | Envelope<'webhook.suspended', { webhookId: string; suspendedAt: string; reason: Open<'failures' | 'gone'> }>
  | Envelope<'key.expiring', { keyId: string; keyPrefix: string; expiresAt: string }>;

/** The known values, and any other. */
type Open<Known extends string> = Known | (string & {});
type GrantKind = Open<'attorney' | 'neutral'>;
type SeatEndReason = Open<'ended_by_organization' | 'access_ended' | 'subscription_ended'>;

interface Envelope<Type extends string, Data> {
  /** The same on every attempt, a UUID. */
  id: string;
  type: Type;
  /** When it happened, ISO 8601 in UTC. */
  createdAt: string;
  organization: { id: string };
  data: Data;
  /** Only on a test event, which `receive` never applies. */
  test?: true;
}
