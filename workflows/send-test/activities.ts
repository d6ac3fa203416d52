import { ApplicationFailure } from '@temporalio/common';
import type { Pool } from 'pg';
import { type TestTarget, testTargetSql } from '#domain/db/queries/test-target.ts';
import { recordVerdict } from '#domain/webhooks/record-verdict.ts';
import { makeSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { judgeSignatures } from '#domain/webhooks/signature-verdict.ts';
import { makeTestEvent } from '#domain/webhooks/test-event.ts';
import type { ActivityDependencies, PostOutcome } from '../deliver-event/activities.ts';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from './types.ts';

type Dependencies = Pick<ActivityDependencies, 'pool' | 'post' | 'sign' | 'onFault'> & { pool: Pool };

/** A test event, signed and ready to be posted. */
interface TestPost {
  webhookId: string;
  eventId: string;
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

/** Makes the activities of test events, over the same connections as those of deliveries. */
export function createTestActivities({ pool, post, sign, onFault = () => {} }: Dependencies): TestActivities {
  async function postTest(input: SendTestInput): Promise<TestResult | null> {
    const target = await findTarget(pool, input);
    if (target === null) return null;
    const made = makePost(input, target, sign);
    return resultOf(made, await post(made));
  }

  async function checkSignatures(input: SendTestInput): Promise<SignatureCheck | null> {
    const target = await findTarget(pool, input);
    if (target === null) return null;
    const { isOurFault, ...check } = await tryBothSignatures({ input, target, post, sign });
    const isRecorded = !isOurFault && (await recordVerdict(pool, { ...input, ...target }, check.verdict));
    const unrecorded = isOurFault ? 'own_fault' : isRecorded ? null : 'changed';
    return { ...check, unrecorded };
  }

  /** What failed stays in our log: an error's text could carry a value into the history. */
  const withoutText =
    <Result>(activity: (input: SendTestInput) => Promise<Result>) =>
    (input: SendTestInput): Promise<Result> =>
      activity(input).catch((cause: unknown) => {
        onFault(cause, { ...input, eventId: '' });
        throw ApplicationFailure.nonRetryable('the test event could not be sent', 'fault');
      });

  return { postTest: withoutText(postTest), checkSignatures: withoutText(checkSignatures) };
}

/**
 * Posts a correctly signed test event and, when it is accepted, a badly signed one: the same in all but ids and MACs, with a signature for each secret in both forms. It is
 * signed with secrets made up for it, so what is wrong is the MAC alone. Judges the answers and records nothing.
 */
export async function tryBothSignatures({
  input,
  target,
  post,
  sign,
}: { input: SendTestInput; target: Pick<TestTarget, 'url' | 'secrets'> } & Pick<
  Dependencies,
  'post' | 'sign'
>): Promise<Omit<SignatureCheck, 'unrecorded'> & { isOurFault: boolean }> {
  const goodPost = makePost(input, target, sign);
  const goodOutcome = await post(goodPost);
  const good = resultOf(goodPost, goodOutcome);
  if (!good.delivered) {
    return { verdict: judgeSignatures(good, null), good, bad: null, isOurFault: goodOutcome.ownFault };
  }
  const signed = makePost(input, target, sign);
  const forged = signatureHeaders({
    id: signed.eventId,
    timestampSeconds: Number(signed.headers['webhook-timestamp']),
    body: signed.body,
    secrets: target.secrets.map(() => makeSecret()),
  });
  const badPost = { ...signed, headers: { ...signed.headers, ...forged } };
  const badOutcome = await post(badPost);
  const bad = resultOf(badPost, badOutcome);
  return { verdict: judgeSignatures(good, bad), good, bad, isOurFault: badOutcome.ownFault };
}

async function findTarget(pool: Pool, { organizationId, webhookId }: SendTestInput): Promise<TestTarget | null> {
  const { rows } = await pool.query<TestTarget>(testTargetSql, [organizationId, webhookId]);
  return rows[0] ?? null;
}

function makePost(
  { organizationId, webhookId, eventType }: SendTestInput,
  { url, secrets }: Pick<TestTarget, 'url' | 'secrets'>,
  sign: ActivityDependencies['sign'],
): TestPost {
  const { id: eventId, body: text } = makeTestEvent(eventType, organizationId, new Date());
  const body = Buffer.from(text);
  const sealed = secrets.map((secret) => Buffer.from(secret, 'base64'));
  const headers = { ...sign({ organizationId, webhookId, eventId }, sealed, body), 'webhook-attempt': '1' };
  return { webhookId, eventId, url, headers, body };
}

function resultOf({ eventId }: TestPost, { kind, status, cause, explanation, timingsMs }: PostOutcome): TestResult {
  return { eventId, delivered: kind === 'delivered', status, cause, explanation, durationMs: timingsMs.total };
}
