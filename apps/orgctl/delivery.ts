import { cancelDelivery, redeliverOne } from '#delivery/requests.ts';
import type { WebhookRequest } from '#domain/webhooks/access.ts';
import { type DeliveryRow, deliveryStates } from '#domain/webhooks/deliveries.ts';
import { getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import type { SwitchState } from '#domain/webhooks/delivery-switch.ts';
import { readDeliverySwitch, setDeliverySwitch } from '#domain/webhooks/delivery-switch.ts';
import { requestRedelivery, type Selection } from '#domain/webhooks/redeliveries.ts';
import { readResponse } from '#domain/webhooks/response-text.ts';
import { type FoundDelivery, listDeliveries } from '#domain/webhooks/search-deliveries.ts';
import { getDeliveryStatus, statusOfState } from '#domain/webhooks/status.ts';
import { UsageError } from '#runtime/errors.ts';
import { type Command, type CommandResult, type Context, type Noun, type Options, webhookOption } from './command.ts';
import { redeliveryText, waitForRedelivery } from './redelivery.ts';
import { fields, table } from './table.ts';
import { getWebhookRequest } from './webhook.ts';

const eventOption = { ...webhookOption, event: { value: 'ID', about: 'the event', required: true } };
const defaultLimit = 1_000;

const list: Command = {
  verb: 'list',
  summary: "list a webhook's deliveries, newest first",
  options: {
    ...webhookOption,
    state: { value: 'S', about: `one of ${deliveryStates.map((one) => `${one} (${statusOfState[one]})`).join(', ')}` },
    limit: { value: 'N', about: `maximum number of rows (default ${defaultLimit})` },
    before: { value: 'ID', about: 'continue after this event' },
  },
  async run(options, context) {
    const state = options.findChoice('state', deliveryStates);
    const atMost = options.getLimit(defaultLimit);
    const before = options.findId('before');
    const request = await getWebhookRequest(options, context);
    const found = await listDeliveries(context.database, request, state, { before, atMost: atMost + 1 });
    const shown = found.slice(0, atMost);
    const deliveries = shown.map(buildRow);
    if (found.length > atMost) context.report(`There are more. Continue with --before ${deliveries.at(-1)?.eventId}`);
    const cells = shown.map((one) => [
      one.eventId,
      one.type,
      getDeliveryStatus(one),
      one.attempts,
      one.createdAt,
      one.nextAttemptAt ?? one.settledAt,
    ]);
    const headings = ['EVENT', 'TYPE', 'STATUS', 'ATTEMPTS', 'OCCURRED', 'NEXT OR FINISHED'];
    return { json: deliveries, text: table(headings, cells, 'No deliveries.') };
  },
};

const show: Command = {
  verb: 'show',
  summary: 'show one delivery and all its attempts',
  options: eventOption,
  async run(options, context) {
    const eventId = options.getId('event');
    const request = await getWebhookRequest(options, context);
    const page = { before: null, atMost: null, withResponses: true };
    const detail = await getDeliveryDetail(context.database, { ...request, eventId }, page);
    const { newestAttempts, olderAttempts: _none, body: _body, ...found } = detail;
    const attempts = newestAttempts.reverse().map(withReadableResponse);
    const row = buildRow(found);
    const { attempts: _count, state: _state, ...rest } = row;
    const cells = attempts.map((one) => [
      one.number,
      one.startedAt,
      one.status,
      one.cause ?? 'Delivering',
      one.timings?.total,
      one.explanation,
    ]);
    const headings = ['#', 'STARTED', 'STATUS', 'CAUSE', 'MS', 'EXPLANATION'];
    return {
      json: { ...row, attempts },
      text: `${fields({ status: getDeliveryStatus(found), ...rest })}\n\n${table(headings, cells, 'No attempts yet.')}`,
    };
  },
};

/** Returns an attempt with `response` as text, or `responseHex` when it has an encoding. */
export function withReadableResponse<Attempt extends { response: Buffer | null; responseEncoding: string | null }>(
  attempt: Attempt,
) {
  const read = attempt.response === null ? null : readResponse(attempt.response, attempt.responseEncoding);
  if (read === null || 'text' in read) return { ...attempt, response: read?.text ?? null };
  return { ...attempt, response: null, responseHex: read.hex };
}

const redeliver: Command = {
  verb: 'redeliver',
  summary: 'redeliver one event, a time range of events, or failed events; of the last 30 days',
  options: {
    ...webhookOption,
    event: { value: 'ID', about: 'this event' },
    from: { value: 'T', about: 'the start of the range (2026-11-20T08:00:00Z), or how long ago it was (90m, 6h, 3d)' },
    to: { value: 'T', about: 'the end of the range' },
    'failed-since': { value: 'T', about: 'events that failed since this time, including those being retried' },
    'no-wait': { value: null, about: 'return at once instead of waiting until all are sent; see redelivery show' },
  },
  async run(options, context) {
    const what = readSelection(options);
    const request = await getWebhookRequest(options, context);
    if ('eventId' in what) return redeliverEvent({ ...request, eventId: what.eventId }, context);
    const requested = await requestRedelivery(context.database, { ...request, selection: what });
    const redelivery = options.has('no-wait') ? requested : await waitForRedelivery(requested, context);
    return { json: redelivery, text: redeliveryText(redelivery) };
  },
};

const cancel: Command = {
  verb: 'cancel',
  summary: 'cancel a pending or held delivery; does not stop an attempt in progress',
  options: eventOption,
  async run(options, context) {
    const eventId = options.getId('event');
    const input = { ...(await getWebhookRequest(options, context)), eventId };
    await cancelDelivery(context.database, input);
    const text = `${eventId}: cancelled. It is not retried, and you cannot redeliver it.`;
    return { json: { eventId, state: 'cancelled' }, text };
  },
};

/** Returns the delivery's row without its current status and its webhook. */
const buildRow = (delivery: FoundDelivery): Omit<DeliveryRow, 'webhookId'> => {
  const { eventId, type, state, attempts, sequence, createdAt, nextAttemptAt, settledAt } = delivery;
  return { eventId, type, state, attempts, sequence, createdAt, nextAttemptAt, settledAt };
};

function readSelection(options: Options): { eventId: string } | Selection {
  const [event, from, to, failedSince] = ['event', 'from', 'to', 'failed-since'].map(
    (name) => options.find(name) !== null,
  );
  const isRange = from || to;
  if (Number(event) + Number(isRange) + Number(failedSince) !== 1)
    throw new UsageError('Choose what to redeliver: --event ID, --from T --to T, or --failed-since T.');
  if (event) return { eventId: options.getId('event') };
  if (failedSince) return { failedSince: options.getMoment('failed-since') };
  return { from: options.getMoment('from'), to: options.getMoment('to') };
}

async function redeliverEvent(input: WebhookRequest & { eventId: string }, context: Context): Promise<CommandResult> {
  const sent = await redeliverOne(context.database, input);
  const text = sent.how === 'queued' ? 'redelivery queued' : 'an attempt is already in progress';
  return { json: sent, text: `${sent.eventId}: ${text}.` };
}

const switchStates: readonly SwitchState[] = ['running', 'paused', 'draining'];

const deliverySwitch: Command = {
  verb: 'switch',
  summary: 'show or set whether the region sends deliveries; while paused or draining, events are held',
  options: { set: { value: 'S', about: `set it to one of ${switchStates.join(', ')}` } },
  async run(options, { database }) {
    const state = options.findChoice('set', switchStates);
    if (state !== null) await setDeliverySwitch(database, state);
    const read = await readDeliverySwitch(database);
    const { changedAt, underWay, isDrained } = read;
    return {
      json: read,
      text: fields({ state: read.state, since: changedAt, 'in progress': underWay, drained: isDrained }),
    };
  },
};

/** `orgctl delivery …` */
export const delivery: Noun = {
  noun: 'delivery',
  summary: 'deliveries of events to webhooks',
  commands: [list, show, redeliver, cancel, deliverySwitch],
};
