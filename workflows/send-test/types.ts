import type { EventType } from '#domain/contract/events.ts';

/** Which webhook gets a test event, and of which type. Ids only, as everything that enters Temporal. */
export interface SendTestInput {
  organizationId: string;
  webhookId: string;
  eventType: EventType;
}

/** How the receiver took it. `status` is the HTTP status or null; `explanation` holds the remedy, and no URL, body or secret. */
export interface TestResult {
  eventId: string;
  delivered: boolean;
  status: number | null;
  cause: string;
  explanation: string;
  durationMs: number;
}

export interface TestActivities {
  /** Signs and posts one test event. Null when the webhook is deleted. */
  postTest(input: SendTestInput): Promise<TestResult | null>;
}
