import { isLoginRejected, isServerUnavailable } from '#domain/db/driver/errors.ts';
import type { AllowList } from '#domain/webhooks/address/addresses.ts';
import { type SealingKeys, SecretNotUnsealedError, unsealHeaders, unsealSecret } from '#domain/webhooks/seal.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { createResolve } from '#runtime/egress/resolve.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import type { DeliveryId } from '#workflows/deliver-event/types.ts';
import type { DeliveryMetrics } from './metrics.ts';
import { type Post, postOnce } from './post/post.ts';
import type { Trial } from './trial.ts';

export type SignedRequest = Pick<Post, 'url' | 'body' | 'nowMs' | 'lookUpMs'> & {
  webhookId: string;
  /** The service's headers. They are recorded with the attempt. */
  headers: Record<string, string>;
  /** The headers that the webhook's owner added. Only their names are recorded. */
  customHeaders: Record<string, string>;
};

/** What the signature of an attempt covers. */
interface ToBeSigned {
  /** Sealed secrets of the webhook, newest first. */
  sealed: Buffer[];
  body: Buffer;
  /** By PostgreSQL's clock: receivers reject old signatures. */
  timestampSeconds: number;
}

/** The settings that decide about non-public addresses. */
export interface AllowSettings {
  webhookAllow: AllowList;
  probeWebhook: { id: string; allow: AllowList } | null;
}

interface SenderOptions {
  config: AllowSettings & { webhookSecretKeys: SealingKeys };
  metrics: DeliveryMetrics;
  log: Logger;
  trial: Pick<Trial, 'fail'>;
}

export type Sender = ReturnType<typeof createSender>;

const internalErrors = {
  internal_error: 'a request could not be prepared; nothing was sent, and the attempt is made again later',
  activity_failed: 'an attempt could not be admitted, made or recorded; its workflow continues',
  response_lost: 'the rest of a response could not be stored; the outcome of its attempt is',
  test_failed: 'a test event could not be sent, or its result not recorded',
  delivery_missing: 'an outcome could not be recorded: its delivery is missing, as after a failover that lost commits',
};

/** Tells errors of signing that the damaged secret of one webhook causes from those that concern all. */
class SigningErrors {
  /** The first webhook whose stored secret does not open; a second one shows that the keys are wrong. */
  #damagedId: string | null = null;

  /** Returns whether the build or its settings may be to blame, and not the row of one webhook. */
  concernsAll(error: unknown, webhookId: string): boolean {
    if (!(error instanceof SecretNotUnsealedError) || error.reason === 'key_missing') return true;
    this.#damagedId ??= webhookId;
    return this.#damagedId !== webhookId;
  }
}

/**
 * Creates what makes and signs requests. Internal errors are logged and counted; those that the
 * build may be to blame for end a trial.
 */
export function createSender({ config, metrics, log, trial }: SenderOptions) {
  const resolve = createResolve();
  const sign = signWith(() => config.webhookSecretKeys);
  const signingErrors = new SigningErrors();

  /** Returns the result of a step that unseals, whose error may end the trial. */
  function unsealing<Result>({ webhookId }: Pick<DeliveryId, 'webhookId'>, step: () => Result): Result {
    try {
      return step();
    } catch (error) {
      if (signingErrors.concernsAll(error, webhookId)) trial.fail('A request could not be signed.');
      throw error;
    }
  }

  return {
    /** Makes one HTTP request for a webhook; never throws because of the receiver. */
    post: ({ webhookId, headers, customHeaders, ...request }: SignedRequest) =>
      postOnce({
        ...request,
        headers: { ...customHeaders, ...headers },
        allow: getAllowList(config, webhookId),
        resolve,
        onInternalError: (error) => {
          log.error({ ...describe(error), webhookId }, internalErrors.internal_error);
          trial.fail('A request could not be prepared.');
        },
      }),
    /** @throws Error when a secret cannot be unsealed. */
    sign: (delivery: DeliveryId, toBeSigned: ToBeSigned): Record<string, string> =>
      unsealing(delivery, () => sign(delivery, toBeSigned)),
    /**
     * Returns the custom headers of a webhook by name; none when `sealed` (base64) is null.
     *
     * @throws Error when they cannot be unsealed.
     */
    unsealCustomHeaders: (webhook: Pick<DeliveryId, 'organizationId' | 'webhookId'>, sealed: string | null) =>
      unsealing(webhook, () => unsealCustomHeaders(webhook, sealed, config.webhookSecretKeys)),
    /** Reports an internal error whose text is stored nowhere else. */
    onInternalError(error: unknown, delivery: DeliveryId, code: keyof typeof internalErrors): void {
      // An attempt that could not be prepared ends with this cause and is counted there.
      if (code !== 'internal_error') metrics.internalErrors.inc({ cause: code });
      if (code === 'activity_failed' && !isServerUnavailable(error) && !isLoginRejected(error))
        trial.fail('An attempt could not be admitted, made or recorded.');
      const { organizationId, webhookId, eventId } = delivery;
      log.error({ ...describe(error), code, organizationId, webhookId, eventId }, internalErrors[code]);
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
    Accept: '*/*', // some firewalls reject a request without it
    'User-Agent': 'org-api-webhooks/1.0',
  });
}

/** Unseals the custom headers of a webhook, by name. */
export function unsealCustomHeaders(
  webhook: Pick<DeliveryId, 'organizationId' | 'webhookId'>,
  sealed: string | null,
  keys: SealingKeys,
): Record<string, string> {
  if (sealed === null) return {};
  const headers = unsealHeaders(Buffer.from(sealed, 'base64'), webhook, keys);
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]));
}

/**
 * Returns the non-public addresses that a webhook may reach. Only the probe of the operator may
 * reach its receiver inside the cluster: no organization can register a name that leads there.
 */
export function getAllowList({ webhookAllow, probeWebhook }: AllowSettings, webhookId: string): AllowList {
  return probeWebhook?.id === webhookId ? probeWebhook.allow : webhookAllow;
}

/** Returns what is logged of an error; only a remedy's text, which contains no secret, is added. */
const describe = (error: unknown) => ({
  error: describeError(error),
  ...(error instanceof SecretNotUnsealedError ? { remedy: error.message } : {}),
});
