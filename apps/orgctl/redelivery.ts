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
import type { Command, Context, Noun, Options } from './command.ts';
import { notifyWorkflow } from './notify-workflow.ts';
import { LeftRunning, Refused } from './refused.ts';
import { fields, table } from './table.ts';
import { getWebhookRequest } from './webhook.ts';

const idOption = { id: { value: 'ID', about: 'the redelivery', required: true } };
const defaultLimit = 100;
/**
 * How often the row is read, how often its progress is printed, and how long a worker has to begin.
 */
const lookEveryMs = 250;
const tellEveryMs = 2_000;
const beginWithinMs = 15_000;

const stopsByItself = 'the redelivery stops before its next page';

const endReasons = {
  webhook_parked: 'its webhook was parked: resume that, which sends all that waits, and ask again for the rest',
  webhook_deleted: 'its webhook was deleted',
};

const sentSoFar = ({ queued, retriesRequested }: RedeliveryRow) =>
  `${queued} deliveries are sent again, and ${retriesRequested} that were being tried are tried now`;
const howToLook = ({ id }: RedeliveryRow) =>
  `look with orgctl redelivery show --id ${id}, stop it with orgctl redelivery cancel --id ${id}`;

/** Returns a redelivery in a sentence. */
export function redeliveryText(redelivery: RedeliveryRow): string {
  switch (redelivery.state) {
    case 'done':
      return `${sentSoFar(redelivery)}.`;
    case 'cancelled':
      return `Cancelled; by then: ${sentSoFar(redelivery)}.`;
    case 'ended':
      return (
        `It ended early, because ${endReasons[redelivery.endReason ?? 'webhook_deleted']}; by then: ` +
        `${sentSoFar(redelivery)}.`
      );
    default:
      if (redelivery.cancelRequestedAt !== null) return `It stops before its next page; ${sentSoFar(redelivery)}.`;
      return `Redelivery ${redelivery.id} is ${redelivery.state}: ${howToLook(redelivery)}.`;
  }
}

/**
 * Waits until a redelivery ends, and reports its progress.
 *
 * @throws Refused when it was cancelled, ended early, or no worker began it within 15 s (the
 * request then stays); LeftRunning on Ctrl-C.
 */
export async function waitForRedelivery(asked: RedeliveryRow, context: Context): Promise<RedeliveryRow> {
  const { organizationId, id: redeliveryId } = asked;
  const { em } = context.database.orm;
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  process.once('SIGINT', stop);
  const beginBy = performance.now() + beginWithinMs;
  const reportProgress = createProgressReport(context);
  try {
    for (;;) {
      const now = await findRedelivery(em, { organizationId, redeliveryId, by: 'operator' });
      if (now === null) throw noSuchRedelivery();
      if (now.state === 'done') return now;
      if (now.finishedAt !== null) throw new Refused(redeliveryText(now));
      if (now.state === 'requested' && performance.now() > beginBy) throw new Refused(notBegun(now));
      reportProgress(now);
      if (stopped.signal.aborted) throw new LeftRunning(`It goes on without this command: ${howToLook(now)}.`);
      await wait(lookEveryMs, undefined, { signal: stopped.signal }).catch(() => {});
    }
  } finally {
    process.off('SIGINT', stop);
  }
}

/** Returns a function that reports what changed, at most every two seconds. */
function createProgressReport({ report }: Context): (redelivery: RedeliveryRow) => void {
  let [seenLast, tellFrom] = [0, performance.now() + tellEveryMs];
  return ({ seen, queued, retriesRequested }) => {
    if (seen === seenLast || performance.now() < tellFrom) return;
    report(`${queued + retriesRequested} sent again so far, ${seen} checked`);
    [seenLast, tellFrom] = [seen, performance.now() + tellEveryMs];
  };
}

const notBegun = (redelivery: RedeliveryRow) =>
  `No worker has begun redelivery ${redelivery.id} within ${beginWithinMs / 1_000} s: see that one runs and that ` +
  `Temporal answers it. The request stands and is carried out then: ${howToLook(redelivery)}.`;

const list: Command = {
  verb: 'list',
  summary: "a webhook's redeliveries of many, newest first",
  options: {
    webhook: { value: 'ID', about: 'the webhook', required: true },
    limit: { value: 'N', about: `at most so many (${defaultLimit})` },
    before: { value: 'ID', about: 'go on below this redelivery' },
  },
  async run(options, context) {
    const atMost = options.getLimit(defaultLimit);
    const before = options.find('before') === null ? null : options.getId('before');
    const request = await getWebhookRequest(options, context);
    const found = await listRedeliveries(context.database.orm.em, { ...request, atMost: atMost + 1, before });
    const redeliveries = found.slice(0, atMost);
    if (found.length > atMost) context.report(`There are more: go on with --before ${redeliveries.at(-1)?.id}`);
    const cells = redeliveries.map((one) => [
      one.id,
      one.state,
      one.seen,
      one.queued,
      one.retriesRequested,
      one.requestedAt,
      one.finishedAt,
      one.failedSince === null ? `${one.from} to ${one.to}` : `failed since ${one.failedSince}`,
    ]);
    const headings = ['ID', 'STATE', 'SEEN', 'QUEUED', 'RETRIED', 'REQUESTED', 'FINISHED', 'WHAT'];
    return { json: redeliveries, text: table(headings, cells, 'No redeliveries.') };
  },
};

const show: Command = {
  verb: 'show',
  summary: 'one redelivery with its progress',
  options: idOption,
  async run(options, context) {
    const redelivery = await findRedelivery(context.database.orm.em, await getRequest(options, context));
    if (redelivery === null) throw noSuchRedelivery();
    return { json: redelivery, text: fields({ ...redelivery }) };
  },
};

const cancel: Command = {
  verb: 'cancel',
  summary: 'stop one before its next page; what it has sent again by then stays so',
  options: idOption,
  async run(options, context) {
    const redelivery = await cancelRedelivery(context.database.orm.em, await getRequest(options, context));
    if (redelivery.finishedAt === null) {
      const signals = await context.openSignals(stopsByItself);
      await notifyWorkflow(context, signals, stopsByItself, (open) => open.cancelRedelivery(redelivery.id));
      await signals?.close();
    }
    return { json: redelivery, text: redeliveryText(redelivery) };
  },
};

/**
 * Returns the redelivery that an operator names by its id only.
 *
 * @throws Refused when there is none.
 */
async function getRequest(options: Options, { database }: Context): Promise<RedeliveryRequest> {
  const redeliveryId = options.getId('id');
  const organizationId = await findRedeliveryOrganization(database.orm.em, redeliveryId);
  if (organizationId === null) throw new Refused('There is no such redelivery in this region.');
  return { organizationId, redeliveryId, by: 'operator' };
}

/** `orgctl redelivery …` */
export const redelivery: Noun = {
  noun: 'redelivery',
  summary: 'ranges of deliveries that are sent again; delivery redeliver asks for one',
  commands: [list, show, cancel],
};
