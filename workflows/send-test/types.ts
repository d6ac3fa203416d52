import type { EventType } from '#domain/contract/events.ts';
import type { SignatureResult } from '#domain/webhooks/signature-result.ts';

/** The webhook that gets a test event, and the event's type. */
export interface SendTestInput {
  organizationId: string;
  webhookId: string;
  eventType: EventType;
  /** Whether to check that the receiver verifies signatures, by a second, wrongly signed event. */
  checkSignatures?: true;
}

/** The receiver's response. `explanation` contains the remedy, and no URL, body or secret. */
export interface TestResult {
  eventId: string;
  delivered: boolean;
  status: number | null;
  cause: string;
  explanation: string;
  durationMs: number;
}

export interface SignatureCheck {
  result: SignatureResult;
  /**
   * Null when the result is stored; `changed`: the webhook's URL or secret has changed since, or it
   * is deleted; `internal_error`: the service could not send.
   */
  unrecorded: 'changed' | 'internal_error' | null;
  good: TestResult;
  /** Null when none was sent, because the correctly signed one was not accepted. */
  bad: TestResult | null;
}

export interface TestActivities {
  /** Signs and posts one test event. Returns null when the webhook is deleted. */
  postTest(input: SendTestInput): Promise<TestResult | null>;
  /** Checks the receiver and records the result. Returns null when the webhook is deleted. */
  checkSignatures(input: SendTestInput): Promise<SignatureCheck | null>;
}
