import { setTimeout as wait } from 'node:timers/promises';
import {
  cancelRedelivery,
  findRedelivery,
  findRedeliveryOrganization,
  listRedeliveries,
  noSuchRedelivery,
  type RedeliveryRequest,
  type RedeliveryRow,
} from '#domain/webhooks/redeliveries.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { type Command, type Context, type Noun, type Options, webhookOption } from './command.ts';
import { CommandError, InterruptedError } from './errors.ts';
import { fields, table } from './table.ts';
import { getWebhookRequest } from './webhook.ts';

const idOption = { id: { value: 'ID', about: 'the redelivery', required: true } };
const defaultLimit = 100;
/** How often the row is read and its progress printed, and how long a worker has to begin. */
const pollEveryMs = 250;
const reportEveryMs = 2_000;
const beginWithinMs = 15_000;

const endReasons = {
  webhook_paused: 'the webhook was paused. Resume it, then redeliver the remaining events',
  webhook_suspended: 'the webhook was suspended. Resume it, then redeliver the remaining events',
  webhook_deleted: 'the webhook was deleted',
};

const sentSoFar = ({ queued }: RedeliveryRow) => `${queued} deliveries queued`;
const howToFollow = ({ id }: RedeliveryRow) =>
  `run orgctl redelivery show --id ${id} to see its progress, or orgctl redelivery cancel --id ${id} to stop it`;

export function redeliveryText(redelivery: RedeliveryRow): string {
  switch (redelivery.state) {
    case 'done':
      return `${sentSoFar(redelivery)}.`;
    case 'cancelled':
      return `Cancelled after ${sentSoFar(redelivery)}.`;
    case 'ended':
      return (
        `Stopped early after ${sentSoFar(redelivery)}, because ` +
        `${endReasons[redelivery.endReason ?? 'webhook_deleted']}.`
      );
    default:
      if (redelivery.cancelRequestedAt !== null)
        return `Stopping after the current batch. So far: ${sentSoFar(redelivery)}.`;
      return `Redelivery ${redelivery.id} is ${redelivery.state}. To follow it, ${howToFollow(redelivery)}.`;
  }
}

/**
 * Waits until a redelivery ends, and reports its progress.
 *
 * @throws CommandError when it was cancelled, ended early, or no worker began it within 15 s (the
 * request then stays); InterruptedError on Ctrl-C.
 */
export async function waitForRedelivery(requested: RedeliveryRow, context: Context): Promise<RedeliveryRow> {
  const { organizationId, id: redeliveryId } = requested;
  const { database } = context;
  const stopped = new AbortController();
  onInterruption(() => stopped.abort());
  const beginBy = performance.now() + beginWithinMs;
  const reportProgress = progressReporter(context);
  for (;;) {
    const now = await findRedelivery(database, { organizationId, redeliveryId, by: 'orgctl' });
    if (now === null) throw noSuchRedelivery();
    if (now.state === 'done') return now;
    if (now.finishedAt !== null) throw new CommandError(redeliveryText(now));
    if (now.state === 'requested' && performance.now() > beginBy) throw new CommandError(notBegun(now));
    reportProgress(now);
    if (stopped.signal.aborted)
      throw new InterruptedError(`The redelivery continues in the background. To follow it, ${howToFollow(now)}.`);
    await wait(pollEveryMs, undefined, { signal: stopped.signal }).catch(() => {});
  }
}

/** Returns a function that reports what changed, at most every two seconds. */
function progressReporter({ report }: Context): (redelivery: RedeliveryRow) => void {
  let [seenLast, reportFrom] = [0, performance.now() + reportEveryMs];
  return ({ seen, queued }) => {
    if (seen === seenLast || performance.now() < reportFrom) return;
    report(`${queued} redelivered, ${seen} scanned`);
    [seenLast, reportFrom] = [seen, performance.now() + reportEveryMs];
  };
}

const notBegun = (redelivery: RedeliveryRow) =>
  `No worker started redelivery ${redelivery.id} within ${beginWithinMs / 1_000} s. Check that a worker runs. ` +
  `The redelivery stays queued and starts then. To follow it, ${howToFollow(redelivery)}.`;

const list: Command = {
  verb: 'list',
  summary: "list a webhook's redeliveries, newest first",
  options: {
    ...webhookOption,
    limit: { value: 'N', about: `maximum number of rows (default ${defaultLimit})` },
    before: { value: 'ID', about: 'continue after this redelivery' },
  },
  async run(options, context) {
    const atMost = options.getLimit(defaultLimit);
    const before = options.findId('before');
    const request = await getWebhookRequest(options, context);
    const found = await listRedeliveries(context.database, { ...request, atMost: atMost + 1, before });
    const redeliveries = found.slice(0, atMost);
    if (found.length > atMost) context.report(`There are more. Continue with --before ${redeliveries.at(-1)?.id}`);
    const cells = redeliveries.map((one) => [
      one.id,
      one.state,
      one.seen,
      one.queued,
      one.requestedAt,
      one.finishedAt,
      one.failedSince === null ? `${one.from} to ${one.to}` : `failed since ${one.failedSince}`,
    ]);
    const headings = ['ID', 'STATE', 'SEEN', 'QUEUED', 'REQUESTED', 'FINISHED', 'WHAT'];
    return { json: redeliveries, text: table(headings, cells, 'No redeliveries.') };
  },
};

const show: Command = {
  verb: 'show',
  summary: 'show one redelivery and its progress',
  options: idOption,
  async run(options, context) {
    const redelivery = await findRedelivery(context.database, await getRequest(options, context));
    if (redelivery === null) throw noSuchRedelivery();
    return { json: redelivery, text: fields({ ...redelivery }) };
  },
};

const cancel: Command = {
  verb: 'cancel',
  summary: 'stop a redelivery after its current batch; events that were sent are not affected',
  options: idOption,
  async run(options, context) {
    const redelivery = await cancelRedelivery(context.database, await getRequest(options, context));
    return { json: redelivery, text: redeliveryText(redelivery) };
  },
};

/** Returns the redelivery that an operator names by its id only. */
async function getRequest(options: Options, { database }: Context): Promise<RedeliveryRequest> {
  const redeliveryId = options.getId('id');
  const organizationId = await findRedeliveryOrganization(database, redeliveryId);
  if (organizationId === null) throw new CommandError('This redelivery does not exist in this region.');
  return { organizationId, redeliveryId, by: 'orgctl' };
}

/** `orgctl redelivery …` */
export const redelivery: Noun = {
  noun: 'redelivery',
  summary: 'redeliveries of many events; start one with delivery redeliver',
  commands: [list, show, cancel],
};
