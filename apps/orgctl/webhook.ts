import { findWebhookOrganization, type WebhookRequest } from '#domain/webhooks/access.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { deliveryStates } from '#domain/webhooks/deliveries.ts';
import { getWebhook, getWebhookWithSecrets, listWebhooks } from '#domain/webhooks/list.ts';
import { deleteWebhook, type MovedDeliveries, pauseWebhook, resumeWebhook } from '#domain/webhooks/park.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { type SignatureResult, signatureResultSentences } from '#domain/webhooks/signature-result.ts';
import { statusOfState, webhookStatusOf } from '#domain/webhooks/status.ts';
import { completeCounts } from '#domain/webhooks/summary.ts';
import { requestSignatureCheck, requestTest } from '#domain/webhooks/test-event.ts';
import { SettingsRefused } from '#runtime/settings/read.ts';
import type { WorkflowClient } from '#workflows/client.ts';
import type { SignatureCheck, TestResult } from '#workflows/send-test/types.ts';
import type { Command, Context, Noun, Options } from './command.ts';
import { getOrganization } from './org.ts';
import { Refused } from './refused.ts';
import { fields, table } from './table.ts';

const webhookOption = { webhook: { value: 'ID', about: 'the webhook', required: true } };

/**
 * Returns the webhook that an operator names by its id only.
 *
 * @throws Refused when there is none.
 */
export async function getWebhookRequest(options: Options, { database }: Context): Promise<WebhookRequest> {
  const webhookId = options.getId('webhook');
  const organizationId = await findWebhookOrganization(database.orm.em, webhookId);
  if (organizationId === null) throw new Refused('There is no such webhook in this region.');
  return { organizationId, webhookId, by: 'operator' };
}

/**
 * Returns the keys of WEBHOOK_SECRET_KEYS.
 *
 * @throws SettingsRefused when they are not set.
 */
export function getSealingKeys({ config }: Context): SealingKeys {
  if (config.sealingKeys !== null) return config.sealingKeys;
  throw new SettingsRefused([
    'WEBHOOK_SECRET_KEYS is missing: the keys that seal signing secrets, as the workers have ' +
      'them; a stack of npm start gets its own when it is started again',
  ]);
}

const secretText = (secret: Record<string, unknown>) =>
  `${fields(secret)}\nThe secret is shown this once: give it to the receiver now.`;

const create: Command = {
  verb: 'create',
  summary: 'subscribe a URL to event types; prints the signing secret, once',
  options: {
    org: { value: 'ID', about: 'the organization', required: true },
    url: { value: 'U', about: 'where events are posted, https', required: true },
    types: { value: 'a,b', about: 'event types: client.started, client.ended, seat.given, seat.ended', required: true },
    description: { value: 'D', about: 'what people call it' },
  },
  async run(options, context) {
    const created = await createWebhook(
      context.database.orm.em,
      {
        organizationId: options.getId('org'),
        by: 'operator',
        url: options.get('url'),
        eventTypes: options.getList('types'),
        description: options.find('description') ?? '',
      },
      { allow: context.config.allow, sealingKeys: getSealingKeys(context) },
    );
    return { json: created, text: secretText({ ...created }) };
  },
};

const list: Command = {
  verb: 'list',
  summary: "an organization's webhooks that are not deleted",
  options: { org: { value: 'ID', about: 'the organization', required: true } },
  async run(options, context) {
    const { id: organizationId } = await getOrganization(options, context);
    const request = { organizationId, by: 'operator' } as const;
    const webhooks = await listWebhooks(context.database.orm.em, request, completeCounts(new Date()));
    const cells = webhooks.map((one) => [
      one.id,
      webhookStatusOf(one),
      one.failingSince,
      one.deliveries.waiting,
      one.deliveries.parked,
      one.deliveries.exhausted,
      one.eventTypes.join(','),
      one.url,
    ]);
    const headings = ['ID', 'STATUS', 'FAILING SINCE', 'PENDING', 'HELD', 'FAILED', 'TYPES', 'URL'];
    return { json: webhooks, text: table(headings, cells, 'No webhooks.') };
  },
};

const resultText = (result: SignatureResult | null) =>
  result === null
    ? 'Whether the receiver verifies has not been checked since the URL and the secret are what they are.'
    : signatureResultSentences[result];

const show: Command = {
  verb: 'show',
  summary: 'one webhook, its deliveries by state, whether its receiver verifies, and the life of its secrets',
  options: webhookOption,
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    const webhook = await getWebhookWithSecrets(context.database.orm.em, request, completeCounts(new Date()));
    const { deliveries, secrets, eventTypes, state: _state, ...rest } = webhook;
    const secretRows = secrets.map(({ id, createdAt, validUntil }) => [id, createdAt, validUntil ?? 'newest']);
    const text = [
      fields({
        status: webhookStatusOf(webhook),
        ...rest,
        eventTypes: eventTypes.join(','),
        ...Object.fromEntries(deliveryStates.map((state) => [statusOfState[state], deliveries[state]])),
      }),
      resultText(rest.signatureResult),
      table(['SECRET', 'CREATED', 'SIGNS UNTIL'], secretRows, 'No secrets.'),
    ].join('\n\n');
    return { json: webhook, text };
  },
};

const change: Command = {
  verb: 'change',
  summary: 'change what is given; the rest stays',
  options: {
    ...webhookOption,
    url: { value: 'U', about: 'a new URL, from the next attempt on' },
    types: { value: 'a,b', about: 'new event types, for events from now on' },
    description: { value: 'D', about: 'what people call it' },
  },
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    const [url, description] = [options.find('url'), options.find('description')];
    const input = {
      ...request,
      ...(url === null ? {} : { url }),
      ...(description === null ? {} : { description }),
      ...(options.find('types') === null ? {} : { eventTypes: options.getList('types') }),
    };
    const { em } = context.database.orm;
    await changeWebhook(em, input, context.config.allow);
    const webhook = await getWebhook(em, request, completeCounts(new Date()));
    return { json: webhook, text: `Changed ${webhook.id}.` };
  },
};

const rotate: Command = {
  verb: 'rotate',
  summary: 'make a new signing secret; the old one signs beside it for a while',
  options: { ...webhookOption, overlap: { value: 'T', about: 'how long, 0 to 7d (24h)' } },
  async run(options, context) {
    const overlapSeconds = options.findSeconds('overlap');
    const request = await getWebhookRequest(options, context);
    const input = { ...request, ...(overlapSeconds === null ? {} : { overlapSeconds }) };
    const rotated = await rotateSecret(context.database.orm.em, input, getSealingKeys(context));
    return { json: rotated, text: secretText({ ...rotated }) };
  },
};

/**
 * Asks a worker to do something for a webhook.
 *
 * @throws Refused without Temporal, and when the webhook is deleted (null) meanwhile.
 */
async function askWorker<Result>(
  context: Context,
  ask: (signals: WorkflowClient) => Promise<Result | null>,
): Promise<Result> {
  const signals = await context.openSignals();
  if (signals === null) throw new Refused('Temporal cannot be asked, and a test event goes through its workers.');
  try {
    const result = await ask(signals);
    if (result === null) throw new Refused('The webhook was deleted meanwhile.');
    return result;
  } finally {
    await signals.close();
  }
}

/**
 * Sends a test event and reports the receiver's response.
 *
 * @throws Refused without Temporal, or when no worker carries it out.
 */
function sendTest(request: WebhookRequest, askedType: string | null, context: Context): Promise<TestResult> {
  return askWorker(context, async (signals) => {
    const eventType = await requestTest(context.database.orm.em, request, askedType);
    const { organizationId, webhookId } = request;
    return signals.sendTest({ organizationId, webhookId, eventType });
  });
}

const unrecordedSentences: Record<NonNullable<SignatureCheck['unrecorded']>, string> = {
  changed: 'The result was not kept, because the URL or the secret was changed meanwhile: check again.',
  internal_error:
    'The result was not kept, because the fault is ours and says nothing of the receiver: check again later.',
};

const verify: Command = {
  verb: 'verify',
  summary:
    'find out whether the receiver verifies: a correctly signed test event, then a badly signed one it must refuse',
  options: webhookOption,
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    const check = await askWorker(context, async (signals) => {
      const eventType = await requestSignatureCheck(context.database.orm.em, request);
      const { organizationId, webhookId } = request;
      return signals.checkSignatures({ organizationId, webhookId, eventType });
    });
    const { result, unrecorded, good, bad } = check;
    if (unrecorded !== null) context.report(unrecordedSentences[unrecorded]);
    const explanation = signatureResultSentences[result];
    const posts = [['good', good] as const, ['bad', bad] as const].map(([signature, post]) => [
      signature,
      post?.status,
      post?.cause ?? 'not sent',
      post?.durationMs,
      post?.explanation,
    ]);
    const headings = ['SIGNATURE', 'STATUS', 'CAUSE', 'MS', 'EXPLANATION'];
    const text = `${fields({ result, explanation })}\n\n${table(headings, posts, '')}`;
    return { json: { result, explanation, unrecorded, good, bad }, text };
  },
};

const test: Command = {
  verb: 'test',
  summary: 'send a signed test event and show how the receiver took it; outside ledger and sequence',
  options: { ...webhookOption, type: { value: 'T', about: 'an event type it is subscribed to (its first)' } },
  async run(options, context) {
    const result = await sendTest(await getWebhookRequest(options, context), options.find('type'), context);
    return { json: result, text: fields({ ...result }) };
  },
};

const resume: Command = {
  verb: 'resume',
  summary: 'send what a parked one has waiting, slowly at first, once a signed probe was accepted',
  options: { ...webhookOption, probe: { value: 'yes|no', about: 'whether to send the probe first (yes)' } },
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    if (options.find('probe') !== 'no') {
      const { delivered, cause, explanation } = await sendTest(request, null, context);
      if (!delivered)
        throw new Refused(`The probe was not accepted (${cause}): ${explanation} Fix that, or resume with --probe no.`);
    }
    const { deliveries } = await resumeWebhook(context.database.orm.em, request);
    return {
      json: { id: request.webhookId, state: 'active', deliveries },
      text: `Active; ${deliveries} deliveries moved with it.`,
    };
  },
};

/** Builds the commands that change the state; they differ in the change and in their texts. */
function stateCommand(
  verb: 'pause' | 'park' | 'delete',
  about: { summary: string; state: string; said: string },
  change: (em: Context['database']['orm']['em'], request: WebhookRequest) => Promise<MovedDeliveries>,
): Command {
  return {
    verb,
    summary: about.summary,
    options: webhookOption,
    async run(options, context) {
      const request = await getWebhookRequest(options, context);
      const { deliveries } = await change(context.database.orm.em, request);
      const json = { id: request.webhookId, state: about.state, deliveries };
      return { json, text: `${about.said}; ${deliveries} deliveries moved with it.` };
    },
  };
}

/** `orgctl webhook …` */
export const webhook: Noun = {
  noun: 'webhook',
  summary: 'subscriptions of organizations to events',
  commands: [
    create,
    list,
    show,
    change,
    rotate,
    test,
    verify,
    resume,
    stateCommand(
      'pause',
      { summary: 'pause it: nothing is sent and nothing is lost', state: 'parked', said: 'Paused' },
      pauseWebhook,
    ),
    stateCommand('park', { summary: 'the same as pause', state: 'parked', said: 'Paused' }, pauseWebhook),
    stateCommand(
      'delete',
      { summary: 'delete it; open deliveries are cancelled', state: 'deleted', said: 'Deleted' },
      deleteWebhook,
    ),
  ],
};
