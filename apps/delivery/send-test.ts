import { CompiledQuery } from 'kysely';
import type { Database } from '#domain/db/database.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { getSignatureResult } from '#domain/webhooks/signature-result.ts';
import { buildTestEvent } from '#domain/webhooks/test-event.ts';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from '#workflows/send-test/types.ts';
import { createInternalFailure } from './attempt.ts';
import { nothingSent, type PostResult } from './post/result.ts';
import { recordSignatureResult } from './record-signature-result.ts';
import type { Sender } from './sender.ts';
import { type TestTarget, testTargetSql } from './sql/test-target.ts';

type Signing = Pick<Sender, 'sign' | 'unsealCustomHeaders' | 'onInternalError'>;

/** A test event; `request` is null when it could not be signed. */
interface TestPost {
  eventId: string;
  timestampSeconds: number;
  request: Parameters<Sender['post']>[0] | null;
}

/** Creates the activities of test events, over the connections of deliveries. */
export function createTestActivities({ database, post, ...signing }: Sender & { database: Database }): TestActivities {
  const { onInternalError } = signing;

  async function postTest(input: SendTestInput): Promise<TestResult | null> {
    const target = await findTarget(database, input);
    if (target === null) return null;
    const made = makePost(input, target, signing);
    return buildTestResult(made, await send(made, post));
  }

  async function checkSignatures(input: SendTestInput): Promise<SignatureCheck | null> {
    const target = await findTarget(database, input);
    if (target === null) return null;
    const { isInternalError, ...check } = await tryBothSignatures({ input, target, post, ...signing });
    const isRecorded =
      !isInternalError && (await recordSignatureResult(database, { ...input, ...target }, check.result));
    const unrecorded = isInternalError ? 'internal_error' : isRecorded ? null : 'changed';
    return { ...check, unrecorded };
  }

  const reported =
    <Result>(activity: (input: SendTestInput) => Promise<Result>) =>
    (input: SendTestInput): Promise<Result> =>
      activity(input).catch((cause: unknown) => {
        onInternalError(cause, { ...input, eventId: '' }, 'test_failed');
        throw createInternalFailure();
      });

  return { postTest: reported(postTest), checkSignatures: reported(checkSignatures) };
}

/**
 * Posts a correctly signed test event and, when it is accepted, a wrongly signed one that differs
 * in its id and MACs only: it is signed with secrets that were generated for it. Records nothing.
 */
export async function tryBothSignatures({
  input,
  target,
  post,
  ...signing
}: { input: SendTestInput; target: Pick<TestTarget, 'url' | 'secrets' | 'headers' | 'nowMs'> } & Signing &
  Pick<Sender, 'post'>): Promise<Omit<SignatureCheck, 'unrecorded'> & { isInternalError: boolean }> {
  const goodPost = makePost(input, target, signing);
  const goodResult = await send(goodPost, post);
  const good = buildTestResult(goodPost, goodResult);
  if (!good.delivered) {
    const isInternalError = goodResult.outcome === 'internal_error';
    return { result: getSignatureResult(good, null), good, bad: null, isInternalError };
  }
  const badPost = makePost(input, target, signing);
  const { request, eventId: id, timestampSeconds } = badPost;
  const secrets = (target.secrets ?? []).map(() => generateSecret());
  if (request !== null) {
    Object.assign(request.headers, signatureHeaders({ id, timestampSeconds, body: request.body, secrets }));
  }
  const badResult = await send(badPost, post);
  const bad = buildTestResult(badPost, badResult);
  const isInternalError = badResult.outcome === 'internal_error';
  return { result: getSignatureResult(good, bad), good, bad, isInternalError };
}

async function findTarget(
  database: Database,
  { organizationId, webhookId }: SendTestInput,
): Promise<TestTarget | null> {
  const [target] = await database.query<TestTarget>(CompiledQuery.raw(testTargetSql, [organizationId, webhookId]));
  return target ?? null;
}

function makePost(
  { organizationId, webhookId, eventType }: SendTestInput,
  { url, secrets, nowMs, headers: sealedHeaders }: Pick<TestTarget, 'url' | 'secrets' | 'headers' | 'nowMs'>,
  { sign, unsealCustomHeaders, onInternalError }: Signing,
): TestPost {
  const { id: eventId, body: text } = buildTestEvent(eventType, organizationId, new Date(nowMs));
  const key = { organizationId, webhookId, eventId };
  const timestampSeconds = Math.floor(nowMs / 1000);
  try {
    if (secrets === null) throw new Error('the webhook has no valid secret');
    const body = Buffer.from(text);
    const sealed = secrets.map((secret) => Buffer.from(secret, 'base64'));
    const headers = { ...sign(key, { sealed, body, timestampSeconds }), 'webhook-attempt': '1' };
    const customHeaders = unsealCustomHeaders(key, sealedHeaders);
    return { eventId, timestampSeconds, request: { webhookId, url, headers, customHeaders, body, nowMs } };
  } catch (error) {
    onInternalError(error, key, 'internal_error');
    return { eventId, timestampSeconds, request: null };
  }
}

const send = async ({ request }: TestPost, post: Sender['post']): Promise<PostResult> =>
  request === null ? nothingSent : post(request);

function buildTestResult(
  { eventId }: TestPost,
  { outcome, status, cause, explanation, timingsMs }: PostResult,
): TestResult {
  return { eventId, delivered: outcome === 'delivered', status, cause, explanation, durationMs: timingsMs.total };
}
