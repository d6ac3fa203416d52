import { deleteWebhook, pauseWebhook, resumeWebhook, type StateChange } from '#delivery/requests.ts';
import { eventTypes } from '#domain/contract/events.ts';
import type { Database } from '#domain/db/database.ts';
import { findWebhookOrganization, type WebhookRequest } from '#domain/webhooks/access.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { deliveryStates } from '#domain/webhooks/deliveries.ts';
import type { HeaderChange } from '#domain/webhooks/headers.ts';
import { getWebhook, getWebhookWithSecrets, listWebhooks } from '#domain/webhooks/list.ts';
import { detachWebhook } from '#domain/webhooks/managed.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { type SignatureResult, signatureResultSentences } from '#domain/webhooks/signature-result.ts';
import { getWebhookStatus, statusOfState, statusOfWebhookState } from '#domain/webhooks/status.ts';
import { completeCounts } from '#domain/webhooks/summary.ts';
import { requestSignatureCheck, requestTest } from '#domain/webhooks/test-event.ts';
import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import type { WorkflowClient } from '#workflows/client.ts';
import type { SignatureCheck, TestResult } from '#workflows/send-test/types.ts';
import { type Command, type Context, type Noun, type Options, orgOption, webhookOption } from './command.ts';
import { CommandError } from './errors.ts';
import { getOrganization } from './org.ts';
import { readText } from './read-text.ts';
import { fields, table } from './table.ts';

/** Returns the webhook that an operator names by its id only. */
export async function getWebhookRequest(options: Options, { database }: Context): Promise<WebhookRequest> {
  const webhookId = options.getId('webhook');
  const organizationId = await findWebhookOrganization(database, webhookId);
  if (organizationId === null) throw new CommandError('This webhook does not exist in this region.');
  return { organizationId, webhookId, by: 'orgctl' };
}

/** Returns the keys of WEBHOOK_SECRET_KEYS. */
export function getSealingKeys({ config }: Context): SealingKeys {
  if (config.sealingKeys !== null) return config.sealingKeys;
  throw new InvalidSettingsError([
    'WEBHOOK_SECRET_KEYS is missing: set the same keys as for the workers. For a stack of npm start, ' +
      'start it again, which creates its keys',
  ]);
}

const secretText = (secret: Record<string, unknown>) =>
  `${fields(secret)}\nThe secret is shown only once. Give it to the receiver now.`;

/**
 * Reads custom headers from a file with `Name: value` on each line, so that no value is an argument, which shells and
 * lists of processes show.
 *
 * @throws CommandError when the file cannot be read, has no header, or a line is no header. It quotes no line.
 */
async function readHeaders(file: string): Promise<{ name: string; value: string }[]> {
  const lines = (await readText(file)).split(/\r?\n/);
  const headers = lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    const [, name, value] = /^([^:]+):(.+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new CommandError(`Line ${index + 1} of ${file} is not a name, a colon and a value.`);
    return { name: name.trim(), value: value.trim() };
  });
  if (headers.length === 0) throw new CommandError(`${file} contains no headers.`);
  return headers;
}

/** Returns the change of custom headers that the options name; null for none. */
async function readHeaderChanges(options: Options): Promise<HeaderChange[] | null> {
  const [file, removed] = [options.find('set-headers'), options.findList('remove-headers')];
  if (file === null && removed === null) return null;
  const set = file === null ? [] : await readHeaders(file);
  return [...set, ...(removed ?? []).map((name) => ({ name, value: null }))];
}

const setHeadersOption = {
  'set-headers': {
    value: 'FILE',
    about: 'custom headers of every request: a file with lines Name: value; - reads standard input',
  },
};

const postsOption = {
  'posts-per-second': { value: 'N|none', about: 'the most requests in a second, 1 to 100; others wait' },
};

/** Returns the bound that the option names, null for none; undefined when it was left out. */
function findPostsPerSecond(options: Options): number | null | undefined {
  const text = options.find('posts-per-second');
  if (text === null) return undefined;
  if (text === 'none') return null;
  if (!/^\d{1,3}$/.test(text)) throw new UsageError('--posts-per-second: enter a number from 1 to 100, or none.');
  return Number(text);
}

const sameUrlOption = {
  'allow-same-url': { value: null, about: 'although another webhook has the URL: its receiver gets each event twice' },
};

const create: Command = {
  verb: 'create',
  summary: 'subscribe a URL to event types, and print the signing secret once',
  options: {
    ...orgOption,
    url: { value: 'U', about: 'the endpoint URL (https)', required: true },
    types: { value: 'a,b', about: `event types: ${eventTypes.join(', ')}`, required: true },
    description: { value: 'D', about: 'a name for people' },
    unordered: { value: null, about: 'send the events of a client or seat without waiting for the one before' },
    ...postsOption,
    ...setHeadersOption,
    ...sameUrlOption,
  },
  async run(options, context) {
    const file = options.find('set-headers');
    const created = await createWebhook(
      context.database,
      {
        organizationId: options.getId('org'),
        by: 'orgctl',
        url: options.get('url'),
        eventTypes: options.findList('types') ?? [],
        description: options.find('description') ?? '',
        ordered: !options.has('unordered'),
        postsPerSecond: findPostsPerSecond(options) ?? null,
        ...(file === null ? {} : { headers: await readHeaders(file) }),
        allowSameUrl: options.has('allow-same-url'),
      },
      { allow: context.config.allow, sealingKeys: getSealingKeys(context) },
    );
    return { json: created, text: secretText({ ...created }) };
  },
};

const list: Command = {
  verb: 'list',
  summary: "list an organization's webhooks, except deleted ones",
  options: orgOption,
  async run(options, context) {
    const { id: organizationId } = await getOrganization(options, context);
    const request = { organizationId, by: 'orgctl' } as const;
    const webhooks = await listWebhooks(context.database, request, completeCounts(new Date()));
    const cells = webhooks.map((one) => [
      one.id,
      getWebhookStatus(one),
      one.failingSince,
      one.retryAfterUntil,
      one.deliveries.waiting,
      one.deliveries.held,
      one.deliveries.exhausted,
      one.eventTypes.join(','),
      one.url,
    ]);
    const headings = ['ID', 'STATUS', 'FAILING SINCE', 'RETRY AFTER', 'PENDING', 'HELD', 'FAILED', 'TYPES', 'URL'];
    return { json: webhooks, text: table(headings, cells, 'No webhooks.') };
  },
};

const resultText = (result: SignatureResult | null) =>
  result === null
    ? 'Signature verification has not been checked with the current URL and secret.'
    : signatureResultSentences[result];

const show: Command = {
  verb: 'show',
  summary: 'show one webhook, its deliveries by status, its signature check and its secrets',
  options: webhookOption,
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    const webhook = await getWebhookWithSecrets(context.database, request, completeCounts(new Date()));
    const { deliveries, secrets, eventTypes, headerNames, state: _state, ...rest } = webhook;
    const secretRows = secrets.map(({ id, createdAt, validUntil }) => [id, createdAt, validUntil ?? 'newest']);
    const text = [
      fields({
        status: getWebhookStatus(webhook),
        ...rest,
        eventTypes: eventTypes.join(','),
        headerNames: headerNames.join(','),
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
  summary: 'change the given settings only',
  options: {
    ...webhookOption,
    url: { value: 'U', about: 'a new URL, used from the next attempt' },
    types: { value: 'a,b', about: 'new event types, used for new events' },
    description: { value: 'D', about: 'a name for people' },
    ordered: { value: 'yes|no', about: 'whether an event waits for the one before of its client or seat' },
    ...postsOption,
    ...setHeadersOption,
    'remove-headers': { value: 'a,b', about: 'names of custom headers to remove; others stay' },
    ...sameUrlOption,
  },
  async run(options, context) {
    const ordered = options.findChoice('ordered', ['yes', 'no']);
    const postsPerSecond = findPostsPerSecond(options);
    const changes = await readHeaderChanges(options);
    const request = await getWebhookRequest(options, context);
    const [url, description, eventTypes] = [
      options.find('url'),
      options.find('description'),
      options.findList('types'),
    ];
    const input = {
      ...request,
      ...(url === null ? {} : { url }),
      ...(description === null ? {} : { description }),
      ...(eventTypes === null ? {} : { eventTypes }),
      ...(ordered === null ? {} : { ordered: ordered === 'yes' }),
      ...(postsPerSecond === undefined ? {} : { postsPerSecond }),
      ...(changes === null ? {} : { headers: { changes, sealingKeys: getSealingKeys(context) } }),
      allowSameUrl: options.has('allow-same-url'),
    };
    const { database } = context;
    await changeWebhook(database, input, context.config.allow);
    const webhook = await getWebhook(database, request, completeCounts(new Date()));
    return { json: webhook, text: `Changed ${webhook.id}.` };
  },
};

const rotate: Command = {
  verb: 'rotate',
  summary: 'create a new signing secret; the old one also signs during the overlap',
  options: { ...webhookOption, overlap: { value: 'T', about: 'the overlap, 0 to 7d (default 24h)' } },
  async run(options, context) {
    const overlapSeconds = options.findSeconds('overlap');
    const request = await getWebhookRequest(options, context);
    const input = { ...request, ...(overlapSeconds === null ? {} : { overlapSeconds }) };
    const rotated = await rotateSecret(context.database, input, getSealingKeys(context));
    return { json: rotated, text: secretText({ ...rotated }) };
  },
};

/**
 * Asks a worker to do something for a webhook.
 *
 * @throws CommandError without Temporal, and when the webhook is deleted (null) meanwhile.
 */
async function askWorker<Result>(
  context: Context,
  ask: (workflows: WorkflowClient) => Promise<Result | null>,
): Promise<Result> {
  const workflows = await context.openWorkflows();
  if (workflows === null) throw new CommandError('Temporal is not available. Test events are sent by its workers.');
  try {
    const result = await ask(workflows);
    if (result === null) throw new CommandError('The webhook was deleted during this command.');
    return result;
  } finally {
    await workflows.close();
  }
}

/** Sends a test event and returns the receiver's response. */
function sendTest(request: WebhookRequest, requestedType: string | null, context: Context): Promise<TestResult> {
  return askWorker(context, async (workflows) => {
    const eventType = await requestTest(context.database, request, requestedType);
    const { organizationId, webhookId } = request;
    return workflows.sendTest({ organizationId, webhookId, eventType });
  });
}

const unrecordedSentences: Record<NonNullable<SignatureCheck['unrecorded']>, string> = {
  changed: 'The result was not saved, because the URL or secret changed during the check. Check again.',
  internal_error:
    'The result was not saved, because of an internal error that is unrelated to the receiver. Check again later.',
};

const verify: Command = {
  verb: 'verify',
  summary:
    'check that the receiver verifies signatures: it must accept one test event, and reject a wrongly signed one',
  options: webhookOption,
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    const check = await askWorker(context, async (workflows) => {
      const eventType = await requestSignatureCheck(context.database, request);
      const { organizationId, webhookId } = request;
      return workflows.checkSignatures({ organizationId, webhookId, eventType });
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
  summary: 'send a signed test event and show the response; it is not counted in the ledger or the sequence',
  options: { ...webhookOption, type: { value: 'T', about: 'a subscribed event type (default the first)' } },
  async run(options, context) {
    const result = await sendTest(await getWebhookRequest(options, context), options.find('type'), context);
    return { json: result, text: fields({ ...result }) };
  },
};

const resumed = statusOfWebhookState.active;
const resume: Command = {
  verb: 'resume',
  summary: 'resume a paused or suspended webhook, and send held deliveries slowly at first; sends a test event before',
  options: {
    ...webhookOption,
    probe: { value: 'yes|no', about: 'whether to send the test event before (default yes)' },
  },
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    if (options.find('probe') !== 'no') {
      const { delivered, cause, explanation } = await sendTest(request, null, context);
      if (!delivered)
        throw new CommandError(
          `The receiver did not accept the test event (${cause}): ${explanation} ` +
            'Fix the cause, or resume with --probe no.',
        );
    }
    const { deliveries } = await resumeWebhook(context.database, request);
    return {
      json: { id: request.webhookId, state: 'active', deliveries },
      text: `${resumed}; ${deliveries} deliveries affected.`,
    };
  },
};

const detach: Command = {
  verb: 'detach',
  summary: 'let the members change a webhook that an object in Kubernetes manages, for example one that is gone',
  options: webhookOption,
  async run(options, context) {
    const request = await getWebhookRequest(options, context);
    await detachWebhook(context.database, request);
    return { json: { id: request.webhookId, managedBy: null }, text: `Detached ${request.webhookId}.` };
  },
};

/** Builds the commands that change the state; they differ in the change and in their texts. */
function stateCommand(
  verb: 'pause' | 'delete',
  summary: string,
  change: (database: Database, request: WebhookRequest) => Promise<StateChange>,
): Command {
  return {
    verb,
    summary,
    options: webhookOption,
    async run(options, context) {
      const request = await getWebhookRequest(options, context);
      const { state, deliveries } = await change(context.database, request);
      const json = { id: request.webhookId, state, deliveries };
      return { json, text: `${statusOfWebhookState[state]}; ${deliveries} deliveries affected.` };
    },
  };
}

/** `orgctl webhook …` */
export const webhook: Noun = {
  noun: 'webhook',
  summary: 'webhooks of organizations',
  commands: [
    create,
    list,
    show,
    change,
    rotate,
    test,
    verify,
    resume,
    detach,
    stateCommand('pause', 'pause a webhook; new events are held until you resume', pauseWebhook),
    stateCommand('delete', 'delete a webhook, and cancel its open deliveries', deleteWebhook),
  ],
};
