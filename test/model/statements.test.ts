import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { PostOutcome } from '#workflows/deliver-event/activities.ts';
import type { AttemptInput } from '#workflows/deliver-event/types.ts';
import { type DeliveryState, openProtocol, type Protocol, type Round } from './protocol.ts';

/**
 * Random commands through the real statements, in the same protocol as delivery.pml. A command is
 * one step of a relay, a worker, the reconciler, the maintenance loop or a person, a period of
 * time, or the loss of Temporal's store. After each command, the database is compared with the
 * guarantees. After the last one, every fault ends and every delivery must be settled. `MODEL_RUNS`
 * sets the number of sequences, and `MODEL_SEED` repeats them.
 */
const runs = Number(process.env.MODEL_RUNS ?? 25);
const seed = Number(process.env.MODEL_SEED ?? Math.floor(Math.random() * 2 ** 31));

const attemptSeconds = 20;
const postSeconds = 10;
const attemptsOfSchedule = 3;

type Answer = (outcome: PostOutcome) => void;

/** A post that a receiver has and has not answered yet. */
interface Post extends Round {
  ageSeconds: number;
  /** Its worker was killed, so nothing records its outcome. */
  isAbandoned: boolean;
  answer: Answer;
  recorded: Promise<unknown>;
}

/**
 * Temporal's state of a running round: the number of failed attempts in its schedule, and the
 * attempt in progress.
 */
type Workflow = Round & { failed: number; hasBegun: boolean; attempt: AttemptInput | null };
type Workflows = Map<string, Workflow>;

class World {
  readonly protocol: Protocol;
  readonly posts: Post[] = [];
  readonly workflows: Workflows = new Map();
  readonly claimed: Round[] = [];
  webhookIds: string[] = [];
  before = new Map<string, DeliveryState>();
  /** Deliveries that a person has redelivered since the last check. */
  readonly sentAgain = new Set<string>();

  private constructor(protocol: Protocol) {
    this.protocol = protocol;
  }

  static async open(): Promise<World> {
    let world: World | undefined;
    const protocol = await openProtocol(() => new Promise((answer) => world?.onArrival(answer)));
    world = new World(protocol);
    world.webhookIds = [await protocol.insertWebhook(), await protocol.insertWebhook()];
    await protocol.makeEvent();
    return world;
  }

  /** Steps run one by one, so a post that arrives belongs to the attempt in progress. */
  private onArrival: (answer: Answer) => void = () => {};

  /**
   * Makes an attempt; resolves when its post has arrived, or when it made none. While an attempt is
   * in progress, only a first one is requested again, as Temporal does when the worker stops
   * answering.
   */
  async attempt(workflow: Workflow): Promise<void> {
    if (workflow.attempt !== null && workflow.failed > 0) return;
    const { organizationId, webhookId, eventId, round, failed } = workflow;
    const input: AttemptInput = {
      organizationId,
      webhookId,
      eventId,
      round,
      nextDelayMs: failed + 1 < attemptsOfSchedule ? 5_000 : null,
      internalErrors: 0,
      onlyAsFirst: !workflow.hasBegun || workflow.attempt !== null,
    };
    workflow.hasBegun = true;
    workflow.attempt = input;
    const arrival = new Promise<Answer>((resolve) => {
      this.onArrival = resolve;
    });
    const made = this.protocol.attempt(input).then(
      (result) => this.proceed(workflow, input, result.kind),
      () => {}, // its outcome could not be recorded: the attempt stays open until it is lost
    );
    const answer = await Promise.race([made, arrival]);
    if (answer === undefined) return;
    const same = this.posts.filter((post) => keyOf(post) === keyOf(workflow) && post.ageSeconds < postSeconds);
    expect(same.map(roundKeyOf), 'posts of a delivery under way at once').toEqual([]);
    this.posts.push({
      organizationId,
      webhookId,
      eventId,
      round,
      ageSeconds: 0,
      isAbandoned: false,
      answer,
      recorded: made,
    });
  }

  /**
   * Does what a round's workflow does with the result of its attempt. It ignores the result of an
   * attempt that it no longer waits for.
   */
  proceed(workflow: Workflow, input: AttemptInput, kind: string): void {
    if (workflow.attempt !== input || kind === 'begun' || kind === 'underWay') return;
    workflow.attempt = null;
    if (kind === 'failed') workflow.failed += 1;
    if (kind === 'delivered' || kind === 'exhausted' || kind === 'closed') this.workflows.delete(roundKeyOf(workflow));
  }

  async pass(seconds: number): Promise<void> {
    await this.protocol.pass(seconds);
    for (const post of this.posts) post.ageSeconds += seconds;
  }

  /** Compares the rows with the guarantees and with the state before. */
  async check(): Promise<void> {
    const deliveries = await this.protocol.listDeliveries();
    const { difference, slots, mostSlots } = await this.protocol.readFigures();
    expect(difference, 'the difference of the ledger').toBe(0);
    expect(mostSlots, 'slots of a webhook').toBeLessThanOrEqual(10);
    expect(slots, 'slots held and attempts open').toBe(deliveries.reduce((sum, { open }) => sum + open, 0));
    for (const now of deliveries) {
      const key = keyOf(now);
      const then = this.before.get(key);
      expect(now.open, 'open attempts of a delivery').toBeLessThanOrEqual(1);
      if (then !== undefined && then.state !== 'waiting') this.checkSettled(then, now);
      expect(now.round).toBeGreaterThanOrEqual(then?.round ?? 1);
      this.before.set(key, now);
    }
    expect(deliveries.length, 'deliveries').toBe(this.before.size);
    this.sentAgain.clear();
  }

  /**
   * Checks that settled rows do not change, unless a person redelivers them or a late 2xx arrives.
   */
  private checkSettled(then: DeliveryState, now: DeliveryState): void {
    if (this.sentAgain.has(keyOf(now))) return;
    if (then.state === 'exhausted' && now.state === 'delivered') return;
    const settled = ({ state, settledAt, round }: DeliveryState) => ({ state, settledAt, round });
    expect(settled(now), 'a settled delivery').toEqual(settled(then));
  }

  /**
   * Ends every fault and lets every receiver accept. Each open delivery must then be settled in
   * bounded time.
   */
  async recover(): Promise<void> {
    for (const id of this.webhookIds) await this.protocol.resume(id);
    for (let step = 0; step < 40 && (step === 0 || (await this.listOpen()).length > 0); step += 1) {
      if (step > 2) await this.pass(30);
      await this.recoverOnce();
      await this.check();
    }
    const open = await this.listOpen();
    expect(open, `deliveries that are still open: ${JSON.stringify(open)}`).toEqual([]);
  }

  private async recoverOnce(): Promise<void> {
    for (const post of this.posts.splice(0)) if (!post.isAbandoned) await answerWith(post, 'accepted');
    await this.protocol.restart();
    await this.protocol.cancelDeleted();
    await serve(this);
    for (const workflow of [...this.workflows.values()]) await this.attempt(workflow);
    const isPosted = (workflow: Round) => this.posts.some((post) => roundKeyOf(post) === roundKeyOf(workflow));
    for (const workflow of [...this.workflows.values()]) if (!isPosted(workflow)) await closeLost(this, workflow);
    await repair(this);
  }

  private async listOpen(): Promise<DeliveryState[]> {
    return (await this.protocol.listDeliveries()).filter(({ state, open }) => state === 'waiting' || open > 0);
  }
}

const keyOf = ({ webhookId, eventId }: Pick<Round, 'webhookId' | 'eventId'>) => `${webhookId}/${eventId}`;
const roundKeyOf = (round: Round) => `${keyOf(round)}/${round.round}`;

function start({ workflows }: World, { organizationId, webhookId, eventId, round }: Round): void {
  const key = roundKeyOf({ organizationId, webhookId, eventId, round });
  if (!workflows.has(key))
    workflows.set(key, { organizationId, webhookId, eventId, round, failed: 0, hasBegun: false, attempt: null });
}

async function serve(world: World): Promise<void> {
  const claimed = await world.protocol.claim();
  for (const round of claimed) start(world, round);
  await world.protocol.recordStarted(claimed);
}

/** An attempt expires, and its workflow continues. The receiver's answer may still arrive. */
async function loseAttempt(world: World, which: number): Promise<void> {
  const post = one(world.posts, which);
  if (post === undefined) return;
  await world.pass(attemptSeconds + 5);
  const workflow = world.workflows.get(roundKeyOf(post));
  if (workflow !== undefined) await closeLost(world, workflow);
}

async function closeLost(world: World, workflow: Workflow): Promise<void> {
  const input = workflow.attempt;
  if (input === null) return;
  const { kind } = await world.protocol.recordLost({ ...input, lostLast: 3 });
  world.proceed(workflow, input, kind);
}

const repair = (world: World) =>
  world.protocol.reconcile(
    (round) => (world.workflows.has(roundKeyOf(round)) ? 'waiting' : 'ended'),
    () => {},
  );

async function answerWith(post: Post, kind: 'accepted' | 'refused' | 'internal'): Promise<void> {
  post.answer(outcomes[kind]);
  await post.recorded;
}

const nothing = {
  timingsMs: { total: 1 },
  peerAddress: null,
  keptBytes: 0,
  answer: Buffer.alloc(0),
  retryAfterSeconds: null,
};
const outcomes: Record<'accepted' | 'refused' | 'internal', PostOutcome> = {
  accepted: {
    kind: 'delivered',
    status: 204,
    cause: 'accepted',
    explanation: 'It was accepted.',
    isInternalError: false,
    ...nothing,
  },
  refused: {
    kind: 'refused',
    status: 503,
    cause: 'answered_server_error',
    explanation: 'No.',
    isInternalError: false,
    ...nothing,
  },
  internal: {
    kind: 'failed',
    status: null,
    cause: 'internal_error',
    explanation: 'Ours.',
    isInternalError: true,
    ...nothing,
  },
};

/** One step; it does nothing in a state that does not allow it. */
class Step implements fc.AsyncCommand<object, World> {
  private readonly name: string;
  private readonly which: number;
  private readonly take: (world: World, which: number) => Promise<void>;

  constructor(name: string, which: number, take: (world: World, which: number) => Promise<void>) {
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

const one = <Item>(items: readonly Item[], which: number): Item | undefined => items[which % Math.max(1, items.length)];

/** Returns one of the items at random, if there is any. */
const withOne =
  <Item>(list: (world: World) => Iterable<Item>, take: (world: World, item: Item) => Promise<unknown>) =>
  async (world: World, which: number) => {
    const item = one([...list(world)], which);
    if (item !== undefined) await take(world, item);
  };

const withWorkflow = (take: (world: World, workflow: Workflow) => Promise<unknown>) =>
  withOne((world) => world.workflows.values(), take);
const withPost = (take: (world: World, post: Post) => Promise<unknown>) =>
  withOne((world) => world.posts.filter(({ isAbandoned }) => !isAbandoned), take);
const withDelivery = (take: (world: World, delivery: DeliveryState) => Promise<unknown>) =>
  withOne((world) => world.before.values(), take);
const withWebhook = (take: (world: World, webhookId: string) => Promise<unknown>) =>
  withOne((world) => world.webhookIds, take);
const answered = (kind: 'accepted' | 'refused' | 'internal') =>
  withPost(async (world, post) => {
    world.posts.splice(world.posts.indexOf(post), 1);
    await answerWith(post, kind);
  });

/** The weight of each step: steps of a normal day are more frequent. */
const steps: Record<string, [weight: number, take: (world: World, which: number) => Promise<void>]> = {
  event: [
    2,
    async (world) => {
      await world.protocol.makeEvent();
      for (const made of await world.protocol.listDeliveries())
        if (!world.before.has(keyOf(made))) world.before.set(keyOf(made), made);
    },
  ],
  // A relay's steps without interruption, so that runs make progress. The separate steps cover
  // interruptions.
  serve: [8, (world) => serve(world)],
  claim: [4, async (world) => void world.claimed.push(...(await world.protocol.claim()))],
  // A relay may start a delivery that another relay has claimed since: its claim remains.
  start: [
    6,
    withOne(
      ({ claimed }) => claimed,
      async (world, round) => start(world, round),
    ),
  ],
  recordStarted: [
    4,
    async (world, which) => {
      const round = one(world.claimed, which);
      if (round === undefined || !world.workflows.has(roundKeyOf(round))) return;
      world.claimed.splice(world.claimed.indexOf(round), 1);
      await world.protocol.recordStarted([round]);
    },
  ],
  relayDies: [1, async (world) => void world.claimed.splice(0)],
  attempt: [16, withWorkflow((world, workflow) => world.attempt(workflow))],
  accepted: [3, answered('accepted')],
  refused: [6, answered('refused')],
  internalError: [1, answered('internal')],
  workerDies: [2, withPost(async (_, post) => void Object.assign(post, { isAbandoned: true }))],
  closeLost: [2, withWorkflow(closeLost)],
  loseAttempt: [4, loseAttempt],
  passShortly: [3, (world) => world.pass(7)],
  passUntilExpired: [2, (world) => world.pass(attemptSeconds + 5)],
  passUntilOverdue: [2, (world) => world.pass(130)],
  passSchedule: [1, (world) => world.pass(4_000)],
  reconcile: [3, async (world) => void (await repair(world))],
  loseTemporal: [1, async (world) => world.workflows.clear()],
  restart: [2, (world) => world.protocol.restart()],
  cancelDeleted: [1, (world) => world.protocol.cancelDeleted()],
  suspendFailing: [1, (world) => world.protocol.suspendFailing()],
  rollUp: [2, async (world) => void (await world.protocol.rollUp())],
  pause: [1, withWebhook((world, id) => world.protocol.pause(id))],
  resume: [2, withWebhook((world, id) => world.protocol.resume(id))],
  delete: [
    1,
    async (world, which) => void (which % 10 === 0 && (await world.protocol.delete(world.webhookIds[0] ?? ''))),
  ],
  redeliver: [
    2,
    withDelivery(async (world, delivery) => {
      if ((await world.protocol.redeliver(delivery)) !== null) world.sentAgain.add(keyOf(delivery));
    }),
  ],
  cancel: [1, withDelivery((world, delivery) => world.protocol.cancel(delivery))],
};

const commands = fc.commands(
  Object.entries(steps).flatMap(([name, [weight, take]]) =>
    Array.from({ length: weight }, () => fc.nat(99).map((which) => new Step(name, which, take))),
  ),
  { maxCommands: 120, size: 'max' },
);

/** Totals of all runs; without enough of each kind they prove little. */
const seen = new Set<string>();

it(
  'the statements post once at a time, settle once and lose no delivery, for any order of actions',
  async () => {
    console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const world = await World.open();
        try {
          await serve(world);
          await world.check();
          await fc.asyncModelRun(() => ({ model: {}, real: world }), sequence);
          for (const what of await world.protocol.listKinds()) seen.add(what);
          await world.recover();
        } finally {
          await world.protocol.close();
        }
      }),
      { numRuns: runs, seed, endOnFailure: process.env.MODEL_SHRINK === undefined },
    );
  },
  60_000 + runs * 10_000,
);
