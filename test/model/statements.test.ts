import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AttemptOutcome } from '#domain/webhooks/causes.ts';
import { readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import {
  type Attempt,
  type DeliveryState,
  type Engine,
  type Hook,
  lostRepeats,
  type Run,
  scheduleAttempts,
  setupEngine,
} from '#test/delivery-engine.ts';

/**
 * Random commands through the real statements, in the same protocol as delivery.pml. A command is
 * one step of a relay, a worker, a repair, a pass or a person, a period of time, or the loss of
 * Temporal's store. After each command, the database is compared with the guarantees. After the
 * last one, every fault ends and every delivery must be settled. `MODEL_RUNS` sets the number of
 * sequences, and `MODEL_SEED` repeats them.
 */
const runs = Number(process.env.MODEL_RUNS ?? 25);
const seed = Number(process.env.MODEL_SEED ?? Math.floor(Math.random() * 2 ** 31));

const subjects = [randomUUID(), randomUUID()];
const slotSeconds = 25;
const postSeconds = 10;

/** A post that a receiver has and has not answered yet. */
interface Post {
  attempt: Attempt;
  ageSeconds: number;
  /** Its worker was killed, so nothing records its outcome. */
  isAbandoned: boolean;
}

interface Bound {
  /** As many as its bucket holds, and the slots that were reserved before there was a bound. */
  atOnce: number;
  /** When each attempt asked that was admitted, by the clock of the world. */
  admitted: number[];
}

class World {
  readonly engine: Engine;
  readonly posts: Post[] = [];
  /** The run of each workflow, by its id: a start ends the one before. */
  readonly workflows = new Map<string, Run>();
  readonly claimed: Run[] = [];
  hooks: Hook[] = [];
  before = new Map<string, DeliveryState>();
  /** Deliveries that a person has redelivered since the last check. */
  readonly requested = new Set<string>();
  readonly redelivered = new Set<string>();
  /** Webhooks whose order was turned off. */
  readonly unordered = new Set<string>();
  /** Posts since the event or the last redelivery, without those that ended as internal errors. */
  readonly made = new Map<string, number>();
  /** Webhooks with a bound of one post a second, by their id. */
  readonly bounds = new Map<string, Bound>();
  private passedSeconds = 0;
  private readonly close: () => Promise<void>;

  private constructor(engine: Engine, close: () => Promise<void>) {
    this.engine = engine;
    this.close = close;
  }

  static async open(): Promise<World> {
    const ends: (() => void | Promise<void>)[] = [];
    const engine = await setupEngine((end) => void ends.push(end));
    const world = new World(engine, async () => {
      for (const end of ends.reverse()) await end();
    });
    const first = await engine.webhook();
    world.hooks = [first, await engine.webhook({ organizationId: first.organizationId, events: 1 })];
    return world;
  }

  end = () => this.close();

  async claim(): Promise<Run[]> {
    return this.engine.claim(this.hooks, { healthy: 20, degraded: 20 });
  }

  start(run: Run): void {
    this.workflows.set(formatDeliveryId(run), run);
  }

  /** A workflow asks for an attempt, and posts when it is admitted. */
  async ask(run: Run, { repeats = false } = {}): Promise<void> {
    const id = randomUUID();
    const askedAt = this.now();
    const first = await this.engine.ask(run, id);
    const row = repeats ? await this.engine.ask(run, id) : first;
    expect(row.decision, 'a repeated request').toBe(first.decision);
    if (row.decision === 'end' && this.workflows.get(formatDeliveryId(run)) === run)
      this.workflows.delete(formatDeliveryId(run));
    if (row.decision !== 'admitted') return;
    this.checkBound(run, askedAt);
    const key = formatDeliveryId(run);
    const same = this.posts.filter((post) => formatDeliveryId(post.attempt) === key && post.ageSeconds < postSeconds);
    expect(same.length, 'posts of a delivery under way at once').toBe(0);
    this.made.set(key, (this.made.get(key) ?? 0) + 1);
    expect(this.made.get(key), 'posts since the request').toBeLessThanOrEqual(scheduleAttempts + lostRepeats);
    this.posts.push({ attempt: { ...run, ...row, id }, ageSeconds: 0, isAbandoned: false });
  }

  async respond(post: Post, outcome: AttemptOutcome, retryAfterS?: number): Promise<void> {
    this.posts.splice(this.posts.indexOf(post), 1);
    const { attempt } = post;
    const key = formatDeliveryId(attempt);
    if (outcome === 'internal_error') this.made.set(key, (this.made.get(key) ?? 1) - 1);
    const ending = { outcome, waitMs: 5_000, ...(retryAfterS === undefined ? {} : { status: 429, retryAfterS }) };
    const row = await this.engine.record(attempt, ending);
    const workflow = this.workflows.get(key);
    if (workflow?.run === attempt.run && row?.state !== 'running') this.workflows.delete(key);
  }

  /** Returns the time of the world in seconds. It runs by itself, too. */
  private now = () => this.passedSeconds + performance.now() / 1_000;

  async bound(hook: Hook): Promise<void> {
    if (this.bounds.has(hook.webhookId)) return;
    await this.engine.setPostsPerSecond(hook, 1);
    const reserved = (await this.engine.deliveries(hook)).filter(({ hasAttempt }) => hasAttempt === false).length;
    this.bounds.set(hook.webhookId, { atOnce: 2 + reserved, admitted: [] });
  }

  async unbound(hook: Hook): Promise<void> {
    await this.engine.setPostsPerSecond(hook, null);
    this.bounds.delete(hook.webhookId);
  }

  /** Checks that no time had more admissions than the bound allows. */
  private checkBound({ webhookId }: Run, askedAt: number): void {
    const bound = this.bounds.get(webhookId);
    bound?.admitted.push(askedAt);
    for (const [index, from] of bound?.admitted.entries() ?? []) {
      const most = (bound?.atOnce ?? 0) + this.now() - from;
      expect((bound?.admitted.length ?? 0) - index, 'attempts of a bounded webhook').toBeLessThanOrEqual(most);
    }
  }

  async pass(seconds: number): Promise<void> {
    this.passedSeconds += seconds;
    await this.engine.pass(this.hooks, seconds);
    for (const post of this.posts) post.ageSeconds += seconds;
  }

  async listDeliveries(): Promise<DeliveryState[]> {
    return (await Promise.all(this.hooks.map((hook) => this.engine.deliveries(hook)))).flat();
  }

  /** Compares the rows with the guarantees and with the state before. */
  async check(): Promise<void> {
    const deliveries = await this.listDeliveries();
    const { difference } = await readLedger(this.engine.database);
    expect(difference, 'the difference of the ledger').toBe(0);
    const { rows } = await this.engine.owner.query<{ open: number; admitted: number; most: number; gaps: number }>(
      `select (select count(*) from delivery_attempt where finished_at is null)::int as open,
         (select count(*) from slot where attempt_id is not null)::int as admitted,
         (select coalesce(max(s.count), 0) from (select count(*) from slot group by webhook_id) s)::int as most,
         (select count(*) from receiver r where r.next_sequence - 1 <> (select count(d.sequence) from delivery d
           where d.webhook_id = r.webhook_id))::int as gaps`,
    );
    expect(rows[0]?.open, 'attempts open and slots held').toBe(rows[0]?.admitted);
    expect(rows[0]?.most, 'slots of a webhook').toBeLessThanOrEqual(10);
    expect(rows[0]?.gaps, 'webhooks with a gap in their sequence').toBe(0);
    for (const now of deliveries) {
      const key = formatDeliveryId(now);
      const then = this.before.get(key);
      if (then !== undefined && then.dueInSeconds === null) this.checkSettled(then, now);
      expect(now.run, 'the run').toBeGreaterThanOrEqual(then?.run ?? 0);
      expect(now.failures, 'failures').toBeLessThanOrEqual(scheduleAttempts + lostRepeats);
      this.before.set(key, now);
    }
    expect(deliveries.length, 'deliveries').toBe(this.before.size);
    for (const key of this.requested) this.redelivered.add(key);
    this.requested.clear();
    this.checkOrder(deliveries);
  }

  /**
   * Checks that one event of each subject is on its way, beside those that a person sent again and those that were
   * stored before an event type was removed from their webhook; of a webhook whose order was never turned off.
   */
  private checkOrder(deliveries: DeliveryState[]): void {
    const onTheWay = deliveries
      .filter(({ subjectId, state }) => subjectId !== null && (state === 'queued' || state === 'running'))
      .filter((one) => !this.redelivered.has(formatDeliveryId(one)) && !this.unordered.has(one.webhookId))
      .map(({ webhookId, subjectId }) => `${webhookId}/${subjectId}`);
    expect(onTheWay, 'events of a subject on their way').toEqual([...new Set(onTheWay)]);
  }

  /**
   * Checks that settled rows do not change, unless a person redelivers them or a late 2xx arrives.
   */
  private checkSettled(then: DeliveryState, now: DeliveryState): void {
    if (this.requested.has(formatDeliveryId(now)) || (then.state === 'exhausted' && now.state === 'delivered')) return;
    const settled = ({ state, run, failures }: DeliveryState) => ({ state, run, failures });
    expect(settled(now), 'a settled delivery').toEqual(settled(then));
  }

  /** Ends every fault and lets every receiver accept. Each open delivery must then be settled. */
  async recover(): Promise<void> {
    for (const hook of this.hooks) await resume(this, hook);
    for (let step = 0; step < 40 && (step === 0 || (await this.listOpen()).length > 0); step += 1) {
      if (step > 2) await this.pass(700); // in all longer than the clock was set back
      await this.engine.repair();
      await this.engine.cancelDeleted();
      await this.engine.unblock();
      await serve(this);
      for (const run of [...this.workflows.values()]) await this.ask(run);
      for (const post of [...this.posts]) {
        if (post.isAbandoned) this.posts.splice(this.posts.indexOf(post), 1);
        else await this.respond(post, 'delivered');
      }
      await this.check();
    }
    const open = await this.listOpen();
    expect(open, `deliveries that are still open: ${JSON.stringify(open)}`).toEqual([]);
  }

  private async listOpen(): Promise<DeliveryState[]> {
    return (await this.listDeliveries()).filter(
      ({ dueInSeconds, hasAttempt }) => dueInSeconds !== null || hasAttempt !== null,
    );
  }
}

const formatDeliveryId = ({ webhookId, eventId }: Pick<Run, 'webhookId' | 'eventId'>) => `${webhookId}/${eventId}`;

async function serve(world: World): Promise<void> {
  for (const run of await world.claim()) world.start(run);
}

/** Writes the row that proves a cancellation, as the console does in its transaction. */
async function recordProof({ engine }: World, { organizationId }: Hook, action: string, detail: object): Promise<void> {
  await engine.owner.query('select record_orgctl_entry($1, null, $2, $3)', [organizationId, action, detail]);
}

async function readState({ engine }: World, { webhookId }: Hook): Promise<string> {
  const { rows } = await engine.owner.query('select state from webhook where id = $1', [webhookId]);
  return rows[0].state;
}

async function resume(world: World, hook: Hook): Promise<void> {
  if ((await readState(world, hook)) === 'paused') await world.engine.change(hook, 'active');
}

/** One step; it does nothing in a state that does not allow it. */
class Step implements fc.AsyncCommand<object, World> {
  private readonly name: string;
  private readonly which: number;
  private readonly take: (world: World, which: number) => Promise<unknown>;

  constructor(name: string, which: number, take: (world: World, which: number) => Promise<unknown>) {
    this.name = name;
    this.which = which;
    this.take = take;
  }

  check = () => true;

  async run(_: object, world: World): Promise<void> {
    await this.take(world, this.which);
    await world.check();
  }

  toString = () => `${this.name}(${this.which})`;
}

/** Returns one of the items at random, if there is any. */
const withOne =
  <Item>(list: (world: World) => Iterable<Item>, take: (world: World, item: Item) => Promise<unknown>) =>
  async (world: World, which: number) => {
    const items = [...list(world)];
    const item = items[which % Math.max(1, items.length)];
    if (item !== undefined) await take(world, item);
  };

const withWorkflow = (take: (world: World, run: Run) => Promise<unknown>) =>
  withOne((world) => world.workflows.values(), take);
const withPost = (take: (world: World, post: Post) => Promise<unknown>) =>
  withOne((world) => world.posts.filter(({ isAbandoned }) => !isAbandoned), take);
const withDelivery = (take: (world: World, delivery: DeliveryState) => Promise<unknown>) =>
  withOne((world) => world.before.values(), take);
const withHook = (take: (world: World, hook: Hook) => Promise<unknown>) => withOne((world) => world.hooks, take);
/** For a change after which a sequence proves less. */
const rarely = (take: (world: World, hook: Hook) => Promise<unknown>) => async (world: World, which: number) =>
  which % 5 === 0 && (await withHook(take)(world, which));

/** The weight of each step: steps of a normal day are more frequent. */
const steps: Record<string, [weight: number, take: (world: World, which: number) => Promise<unknown>]> = {
  event: [
    2,
    async (world, which) => {
      await world.engine.events(
        world.hooks[0]?.organizationId ?? '',
        1,
        subjects[which % 3] ?? null,
        which % 2 === 0 ? 'seat.given' : 'seat.ended',
      );
      for (const made of await world.listDeliveries())
        if (!world.before.has(formatDeliveryId(made))) world.before.set(formatDeliveryId(made), made);
    },
  ],
  // A relay's steps without interruption, so that runs make progress. The separate steps cover
  // interruptions.
  serve: [8, serve],
  claim: [4, async (world) => world.claimed.push(...(await world.claim()))],
  // A start may come late: after another relay has claimed and started the delivery.
  start: [
    6,
    withOne(
      ({ claimed }) => claimed,
      async (world, run) => world.start(run),
    ),
  ],
  returnClaim: [
    2,
    withOne(
      ({ claimed }) => claimed,
      async (world, run) => {
        world.claimed.splice(world.claimed.indexOf(run), 1);
        await world.engine.returnClaims([run]);
      },
    ),
  ],
  relayDies: [1, async (world) => world.claimed.splice(0)],
  ask: [16, withWorkflow((world, run) => world.ask(run))],
  askWithoutReply: [2, withWorkflow((world, run) => world.ask(run, { repeats: true }))],
  accepted: [3, withPost((world, post) => world.respond(post, 'delivered'))],
  rejected: [7, withPost((world, post) => world.respond(post, 'failed'))],
  limited: [1, withPost((world, post) => world.respond(post, 'failed', 30))],
  internalError: [1, withPost((world, post) => world.respond(post, 'internal_error'))],
  workerDies: [3, withPost(async (_, post) => Object.assign(post, { isAbandoned: true }))],
  passShortly: [3, (world) => world.pass(7)],
  passUntilExpired: [
    5,
    async (world) => {
      await world.pass(slotSeconds + 1);
      await world.engine.repair();
    },
  ],
  passUntilLate: [2, (world) => world.pass(130)],
  passSchedule: [1, (world) => world.pass(4_000)],
  setClockBack: [
    1,
    async (world) => {
      await world.engine.pass(world.hooks, -3_600);
      for (const bound of world.bounds.values()) bound.admitted = []; // their buckets are full
    },
  ],
  bound: [2, withHook((world, hook) => world.bound(hook))],
  unbound: [1, withHook((world, hook) => world.unbound(hook))],
  repair: [4, (world) => world.engine.repair()],
  unblock: [2, (world) => world.engine.unblock()],
  turnOrderOff: [
    1,
    rarely(async (world, { webhookId }) => {
      await world.engine.owner.query('update webhook set ordered = false where id = $1', [webhookId]);
      world.unordered.add(webhookId);
    }),
  ],
  removeType: [
    1,
    rarely(async (world, hook) => {
      const removal = `update webhook set event_types = '{seat.ended}' where id = $1`;
      await world.engine.owner.query(removal, [hook.webhookId]);
      for (const before of await world.engine.deliveries(hook)) world.redelivered.add(formatDeliveryId(before));
    }),
  ],
  loseTemporal: [1, async (world) => world.workflows.clear()],
  requeueHeld: [2, (world) => world.engine.requeueHeld()],
  cancelDeleted: [1, (world) => world.engine.cancelDeleted()],
  suspend: [1, (world) => world.engine.suspend()],
  rollUp: [2, (world) => rollUpLedger(world.engine.database, { settledForSeconds: 0 })],
  pause: [
    1,
    withHook(async (world, hook) => {
      if ((await readState(world, hook)) === 'active') await world.engine.change(hook, 'paused');
    }),
  ],
  resume: [2, withHook(resume)],
  delete: [
    1,
    async (world, which) => {
      const [hook] = world.hooks;
      if (which % 10 !== 0 || hook === undefined || (await readState(world, hook)) === 'deleted') return;
      await world.engine.change(hook, 'deleted');
      await recordProof(world, hook, 'webhook.delete', { webhookId: hook.webhookId });
    },
  ],
  redeliver: [
    2,
    withDelivery(async (world, delivery) => {
      if ((await readState(world, delivery)) !== 'active') return;
      const isSettled = (await world.listDeliveries()).some(
        (now) => formatDeliveryId(now) === formatDeliveryId(delivery) && now.dueInSeconds === null,
      );
      if ((await world.engine.redeliver(delivery)) !== 'queued') return;
      world.requested.add(formatDeliveryId(delivery));
      if (isSettled) world.made.set(formatDeliveryId(delivery), 0);
    }),
  ],
  cancel: [
    1,
    withDelivery(async (world, delivery) => {
      const { webhookId, eventId } = delivery;
      if (await world.engine.cancel(delivery))
        await recordProof(world, delivery, 'delivery.cancel', { webhookId, eventId });
    }),
  ],
};

const commands = fc.commands(
  Object.entries(steps).flatMap(([name, [weight, take]]) =>
    Array.from({ length: weight }, () => fc.nat(99).map((which) => new Step(name, which, take))),
  ),
  { maxCommands: 120, size: 'max' },
);

it(
  'the statements post once at a time and not too often, settle once and lose no delivery, for any order of actions',
  async () => {
    console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const world = await World.open();
        try {
          await serve(world);
          await world.check();
          await fc.asyncModelRun(() => ({ model: {}, real: world }), sequence);
          await world.recover();
        } finally {
          await world.end();
        }
      }),
      { numRuns: runs, seed, endOnFailure: process.env.MODEL_SHRINK === undefined },
    );
  },
  60_000 + runs * 10_000,
);
