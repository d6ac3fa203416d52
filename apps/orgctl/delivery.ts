import { setTimeout as wait } from 'node:timers/promises';
import type { WebhookRequest } from '#domain/webhooks/access.ts';
import { type DeliveryState, deliveryStates, getDelivery, listDeliveries } from '#domain/webhooks/deliveries.ts';
import { redeliverOne, redeliverPage, requestRedelivery, type Selection } from '#domain/webhooks/redeliver.ts';
import type { Answer, Command, Context, Noun, Options } from './command.ts';
import { WrongUse } from './refused.ts';
import { fields, table } from './table.ts';
import type { DeliverySignals } from './temporal.ts';
import { getWebhookRequest } from './webhook.ts';

const webhookOption = { webhook: { value: 'ID', about: 'the webhook', required: true } };
const defaultLimit = 1_000;
/** The steady pace of a redelivery: so many deliveries, then a second's rest. */
const perPage = 100;
const paceMs = 1_000;
const notRunning = 'The delivery’s workflow does not run (any more); the worker gives it a new one within two minutes.';

const list: Command = {
  verb: 'list',
  summary: "a webhook's deliveries, newest event first",
  options: {
    ...webhookOption,
    state: { value: 'S', about: `one of ${deliveryStates.join(', ')}` },
    limit: { value: 'N', about: `at most so many (${defaultLimit})` },
    before: { value: 'ID', about: 'go on below this event' },
  },
  async run(options, context) {
    const state = findState(options);
    const atMost = findLimit(options);
    const before = options.find('before') === null ? null : options.getId('before');
    const request = await getWebhookRequest(options, context);
    const found = await listDeliveries(context.database.orm.em, { ...request, state, before, atMost: atMost + 1 });
    const deliveries = found.slice(0, atMost);
    if (found.length > atMost) context.report(`There are more: go on with --before ${deliveries.at(-1)?.eventId}`);
    const cells = deliveries.map((one) => [
      ...[one.eventId, one.type, one.state, one.round, one.attempts, one.createdAt, one.nextAttemptAt ?? one.settledAt],
    ]);
    const headings = ['EVENT', 'TYPE', 'STATE', 'ROUND', 'ATTEMPTS', 'HAPPENED', 'NEXT OR SETTLED'];
    return { json: deliveries, text: table(headings, cells, 'No deliveries.') };
  },
};

const show: Command = {
  verb: 'show',
  summary: 'one delivery with every attempt',
  options: { ...webhookOption, event: { value: 'ID', about: 'the event', required: true } },
  async run(options, context) {
    const eventId = options.getId('event');
    const request = await getWebhookRequest(options, context);
    const delivery = await getDelivery(context.database.orm.em, { ...request, eventId });
    const { attempts, ...rest } = delivery;
    const cells = attempts.map((one) => [
      ...[
        one.number,
        one.round,
        one.startedAt,
        one.status,
        one.cause ?? 'under way',
        one.timings?.total,
        one.explanation,
      ],
    ]);
    const headings = ['#', 'ROUND', 'STARTED', 'STATUS', 'CAUSE', 'MS', 'EXPLANATION'];
    return { json: delivery, text: `${fields(rest)}\n\n${table(headings, cells, 'No attempt yet.')}` };
  },
};

const redeliver: Command = {
  verb: 'redeliver',
  summary: 'send again: one event, a range of events, or all that failed since a moment; of the last 30 days',
  options: {
    ...webhookOption,
    event: { value: 'ID', about: 'this event' },
    from: { value: 'T', about: 'events from this moment on: 2026-11-20T08:00:00Z, or how long ago: 90m, 6h, 3d' },
    to: { value: 'T', about: 'up to this moment' },
    'failed-since': { value: 'T', about: 'all that failed since, also what is still being tried' },
  },
  async run(options, context) {
    const what = readSelection(options);
    const request = await getWebhookRequest(options, context);
    const signals = await context.openSignals();
    try {
      return 'eventId' in what
        ? await redeliverEvent({ ...request, eventId: what.eventId }, signals, context)
        : await redeliverMany(request, what, signals, context);
    } finally {
      await signals?.close();
    }
  },
};

function findState(options: Options): DeliveryState | null {
  const state = options.find('state');
  if (state === null || (deliveryStates as readonly string[]).includes(state)) return state as DeliveryState | null;
  throw new WrongUse(`--state: there are ${deliveryStates.join(', ')}.`);
}

function findLimit(options: Options): number {
  const text = options.find('limit') ?? String(defaultLimit);
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1 || limit > 100_000)
    throw new WrongUse('--limit: give a number from 1 to 100000.');
  return limit;
}

function readSelection(options: Options): { eventId: string } | Selection {
  const [event, from, to, failedSince] = ['event', 'from', 'to', 'failed-since'].map(
    (name) => options.find(name) !== null,
  );
  const isRange = from || to;
  if (Number(event) + Number(isRange) + Number(failedSince) !== 1)
    throw new WrongUse('Say what to send again: --event ID, or --from T --to T, or --failed-since T.');
  if (event) return { eventId: options.getId('event') };
  if (failedSince) return { failedSince: options.getMoment('failed-since') };
  return { from: options.getMoment('from'), to: options.getMoment('to') };
}

async function redeliverEvent(
  input: WebhookRequest & { eventId: string },
  signals: DeliverySignals | null,
  { database, report }: Context,
): Promise<Answer> {
  const sent = await redeliverOne(database.orm.em, input, { canRetryNow: signals !== null });
  if (sent.how === 'retry_now' && !(await signals?.retryNow(input, sent.round))) report(notRunning);
  const how = sent.how === 'retry_now' ? 'its next attempt is made now' : `it is sent again, round ${sent.round}`;
  return { json: sent, text: `${sent.eventId}: ${how}.` };
}

/**
 * Page by page at a steady pace. For now this process carries it out: ended half-way, what is left is asked for again.
 * The workflow `redelivery/<id>` takes over the same pages.
 */
async function redeliverMany(
  request: WebhookRequest,
  selection: Selection,
  signals: DeliverySignals | null,
  { database, report }: Context,
): Promise<Answer> {
  const redelivery = await requestRedelivery(database.orm.em, { ...request, selection });
  const counts = { queued: 0, retriedNow: 0, notRunning: 0 };
  for (let after: string | null = null; ; ) {
    const page = await redeliverPage(database.pool, redelivery, {
      after,
      atMost: perPage,
      canRetryNow: signals !== null,
    });
    for (const { eventId, round, how } of page.redelivered) {
      if (how === 'queued') counts.queued += 1;
      else if (await signals?.retryNow({ ...request, eventId }, round)) counts.retriedNow += 1;
      else counts.notRunning += 1;
    }
    if (page.next === null) break;
    after = page.next;
    if (page.redelivered.length > 0) {
      report(`${counts.queued + counts.retriedNow} sent again so far`);
      await wait(paceMs);
    }
  }
  if (counts.notRunning > 0) report(`${counts.notRunning} times: ${notRunning}`);
  const text = `${counts.queued} deliveries are sent again, and ${counts.retriedNow} that were being tried are tried now.`;
  return { json: { id: redelivery.id, ...counts }, text };
}

/** `orgctl delivery …` */
export const delivery: Noun = {
  noun: 'delivery',
  summary: 'events on their way to webhooks',
  commands: [list, show, redeliver],
};
