import { type SealingKeys, SecretNotUnsealed, unsealSecret } from '#domain/webhooks/seal.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import type { InternalErrorCode, Sender } from './attempt.ts';
import type { DeliveryMetrics } from './metrics.ts';
import { type AllowSettings, allowOf } from './post/allow.ts';
import { postOnce } from './post/post.ts';
import { createResolve } from './post/resolve.ts';
import { TlsSessions } from './post/tls-sessions.ts';
import type { Trial } from './trial.ts';

interface SenderOptions {
  config: AllowSettings & { webhookSecretKeys: SealingKeys };
  metrics: DeliveryMetrics;
  log: Logger;
  trial: Pick<Trial, 'fail'>;
}

/** Creates what makes and signs requests; internal errors are logged, counted, and end a trial. */
export function createSender({ config, metrics, log, trial }: SenderOptions): Sender {
  const resolve = createResolve();
  const sessions = new TlsSessions();
  const sign = signWith(() => config.webhookSecretKeys);
  return {
    post: ({ organizationId: _, webhookId, ...request }) =>
      postOnce({
        ...request,
        allow: allowOf(config, webhookId),
        resolve,
        tls: { sessions, webhookId },
        onInternalError: (error) => {
          log.error({ ...describe(error), webhookId }, internalErrorLines.internal_error);
          trial.fail('A request could not be prepared.');
        },
      }),
    sign(delivery, toBeSigned) {
      try {
        return sign(delivery, toBeSigned);
      } catch (error) {
        trial.fail('A request could not be signed.');
        throw error;
      }
    },
    onInternalError(error, { organizationId, webhookId, eventId }, code) {
      // An attempt that could not be prepared ends with this cause and is counted there.
      if (code !== 'internal_error') metrics.internalErrors.inc({ cause: code });
      log.error({ ...describe(error), code, organizationId, webhookId, eventId }, internalErrorLines[code]);
    },
  };
}

/** Returns a function that signs attempts. It calls `keys` for each: their file may change. */
export function signWith(keys: () => SealingKeys): Sender['sign'] {
  return ({ organizationId, webhookId, eventId }, { sealed, body, timestampSeconds }) => ({
    ...signatureHeaders({
      id: eventId,
      timestampSeconds,
      body,
      secrets: sealed.map((secret) => unsealSecret(secret, { organizationId, webhookId }, keys())),
    }),
    'webhook-endpoint': webhookId,
    'Content-Type': 'application/json',
    // Some firewalls refuse a request without it.
    Accept: '*/*',
    'User-Agent': 'org-api-webhooks/1.0',
  });
}

/** Returns what is logged of an error; only a remedy's text, which contains no secret, is added. */
const describe = (error: unknown) => ({
  error: describeError(error),
  ...(error instanceof SecretNotUnsealed ? { remedy: error.message } : {}),
});

const internalErrorLines: Record<InternalErrorCode, string> = {
  internal_error: 'a request could not be prepared; nothing was sent, and the attempt is made again later',
  activity_failed: 'an attempt could not be admitted, made or recorded; its workflow continues',
  delivery_missing: 'an outcome could not be recorded: its delivery is missing, as after a failover that lost commits',
};
