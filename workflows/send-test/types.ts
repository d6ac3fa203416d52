import type { EventType } from '#domain/contract/events.ts';
import type { SignatureResult } from '#domain/webhooks/signature-result.ts';

/**
 * Which webhook gets a test event, and of which type. Ids only, as everything that enters Temporal.
 */
export interface SendTestInput {
  organizationId: string;
  webhookId: string;
  eventType: EventType;
  /**
   * Finds out whether the receiver verifies signatures, with a second test event that is badly
   * signed; only on its owner's request. Left out: one, correctly signed.
   */
  checkSignatures?: true;
}

/**
 * How the receiver took it. `status` is the HTTP status or null; `explanation` holds the remedy,
 * and no URL, body or secret.
 */
export interface TestResult {
  eventId: string;
  delivered: boolean;
  status: number | null;
  cause: string;
  explanation: string;
  durationMs: number;
}

/** What a check of signatures came to. */
export interface SignatureCheck {
  result: SignatureResult;
  /**
   * Null when the result is on the webhook now; `changed`: its URL or secret is another since, or
   * it is deleted; `internal_error`: we could not send, which says nothing of the receiver.
   */
  unrecorded: 'changed' | 'internal_error' | null;
  good: TestResult;
  /** Null when none was sent, because the good one was not accepted and that settles it. */
  bad: TestResult | null;
}

export interface TestActivities {
  /** Signs and posts one test event. Null when the webhook is deleted. */
  postTest(input: SendTestInput): Promise<TestResult | null>;
  /**
   * Posts a correctly signed test event and, when it is accepted, a badly signed one, and records
   * the result. Null when the webhook is deleted.
   */
  checkSignatures(input: SendTestInput): Promise<SignatureCheck | null>;
}
