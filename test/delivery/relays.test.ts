import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import {
  type Attempt,
  type Engine,
  type Hook,
  lostRepeats,
  type Run,
  scheduleAttempts,
  setupEngine,
} from '#test/delivery-engine.ts';

/**
 * Four relays and their workers at once against one database, with a Temporal that loses its store
 * twice and processes that die at any step. Receivers accept, reject half or all. Time is
 * accelerated: slots last for a second.
 */
const reserveMs = 250;
const slotMs = 1_000;
const deathsOfThousand = 30;
const eventsPerOrganization = 30;

it('four relays at once keep every bound exactly, post once at a time, and lose, forget or skip nothing', async () => {
  const engine = await setupEngine(onTestFinished);
  const world = new World(engine);
  await world.insertWebhooks();
  await world.run();
  const figures = await readFigures(engine);
  expect(world.violations).toEqual([]);
  expect(figures).toMatchObject({ open: 0, slots: 0, openAttempts: 0, unproven: 0, gaps: 0 });
  expect(figures.attempts, 'posts and rows').toBe(world.posts);
  expect(world.deaths, 'processes that died').toBeGreaterThan(10);
  expect(figures.mostRuns, 'runs of a delivery').toBeGreaterThan(2);
  expect(world.most).toMatchObject({ webhook: 10, host: 20 });
  expect(world.most.healthy).toBeGreaterThan(30);
  expect(world.most.healthy).toBeLessThanOrEqual(50);
  expect(world.most.degraded).toBeLessThanOrEqual(5);
}, 120_000);

type Kind = 'prompt' | 'half' | 'failing';

class World {
  posts = 0;
  deaths = 0;
  readonly violations: string[] = [];
  readonly most = { webhook: 0, healthy: 0, degraded: 0, host: 0 };
  private readonly engine: Engine;
  private readonly hooks: (Hook & { kind: Kind })[] = [];
  /** Running workflows by id; another object under an id ends the one before. */
  private workflows = new Map<string, object>();
  private readonly underWay = new Map<string, number>();
  private readonly ids = new Map<string, number>();
  private isOver = false;
  private seed = 1;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  async insertWebhooks(): Promise<void> {
    for (let made = 0; made < 2; made += 1) {
      const host = `host-${made}`;
      const first = await this.engine.webhook({ host });
      const { organizationId } = first;
      this.hooks.push({ ...first, kind: 'prompt' });
      for (const kind of ['prompt', 'prompt', 'half', 'failing'] as const)
        this.hooks.push({
          ...(await this.engine.webhook(kind === 'prompt' ? { organizationId, host } : { organizationId })),
          kind,
        });
      await this.engine.events(organizationId, eventsPerOrganization);
    }
  }

  async run(): Promise<void> {
    const processes = [
      this.relay(),
      this.relay(),
      this.relay(),
      this.relay(),
      this.repairs(),
      this.repairs(),
      this.observe(),
    ];
    let open = 1;
    for (let step = 0; open > 0 && step < 400; step += 1) {
      await wait(100);
      if (step === 8 || step === 20) this.workflows = new Map(); // Temporal's store is lost
      const { rows } = await this.engine.owner.query(
        `select count(*)::int as open from delivery where due_at is not null`,
      );
      open = rows[0].open;
    }
    await wait(slotMs);
    this.isOver = true;
    await Promise.all(processes);
  }

  private random(): number {
    this.seed = (this.seed * 48_271) % 2_147_483_647;
    return this.seed / 2_147_483_647;
  }

  private dies(): boolean {
    const dies = this.random() * 1_000 < deathsOfThousand;
    if (dies) this.deaths += 1;
    return dies;
  }

  private async relay(): Promise<void> {
    while (!this.isOver) {
      const hooks = this.hooks.toSorted(() => this.random() - 0.5);
      for (const claim of await this.engine.claim(hooks, { healthy: 64, degraded: 8, reserveS: reserveMs / 1_000 })) {
        if (this.dies()) continue;
        const workflow = {};
        this.workflows.set(formatId(claim), workflow);
        void this.work(claim, workflow);
      }
      await wait(5 + this.random() * 10);
    }
  }

  /** A workflow: attempts and waits, until it ends or another one runs under its id. */
  private async work(run: Run, workflow: object): Promise<void> {
    while (!this.isOver) {
      const waitMs = await this.attempt(run).catch((error: Error) => void this.violations.push(error.message));
      if (this.workflows.get(formatId(run)) !== workflow || waitMs === undefined) return;
      await wait(Math.min(waitMs, 2_000));
      if (this.workflows.get(formatId(run)) !== workflow) return;
    }
  }

  /** Returns ms until the run asks again; undefined when it ends. */
  private async attempt(run: Run): Promise<number | undefined> {
    if (this.dies()) return slotMs;
    const id = crypto.randomUUID();
    let row = await this.engine.ask(run, id, undefined, slotMs / 1_000);
    while (row.decision === 'lock_busy') {
      await wait(5 + this.random() * 10);
      row = await this.engine.ask(run, id, undefined, slotMs / 1_000);
    }
    if (row.decision === 'wait') return Math.min(row.waitMs, slotMs);
    if (row.decision === 'end') return undefined;
    const hook = this.hooks.find(({ webhookId }) => webhookId === run.webhookId);
    const isAccepted = await this.post(run, hook?.kind ?? 'prompt');
    if (this.dies()) return slotMs;
    const attempt: Attempt = { ...run, ...row, id };
    const outcome = await this.engine.record(attempt, { outcome: isAccepted ? 'delivered' : 'failed', waitMs: 50 });
    return outcome?.state === 'running' ? 50 : undefined;
  }

  private async post(run: Run, kind: Kind): Promise<boolean> {
    const id = formatId(run);
    this.posts += 1;
    const posts = (this.ids.get(id) ?? 0) + 1;
    this.ids.set(id, posts);
    if (posts > scheduleAttempts + lostRepeats) this.violations.push(`${posts} posts of ${id}`);
    const count = (this.underWay.get(id) ?? 0) + 1;
    this.underWay.set(id, count);
    if (count > 1) this.violations.push(`${count} posts at once of ${id}`);
    await wait(5 + this.random() * 20);
    this.underWay.set(id, (this.underWay.get(id) ?? 1) - 1);
    return kind === 'prompt' || (kind === 'half' && this.random() < 0.5);
  }

  private async repairs(): Promise<void> {
    while (!this.isOver) {
      await this.engine.repair({ lateS: 0.6, waitsMs: [50] });
      await wait(50);
    }
  }

  private async observe(): Promise<void> {
    while (!this.isOver) {
      const { rows } = await this.engine.owner.query<{
        webhook: number;
        healthy: number;
        degraded: number;
        host: number;
      }>(
        `select coalesce(max(of_webhook), 0)::int as webhook,
           coalesce(max(of_kind) filter (where not degraded), 0)::int as healthy,
           coalesce(max(of_kind) filter (where degraded), 0)::int as degraded, coalesce(max(of_host), 0)::int as host
         from (select degraded, count(*) over (partition by webhook_id) as of_webhook,
           count(*) over (partition by organization_id, degraded) as of_kind,
           count(*) over (partition by organization_id, host) as of_host from slot) s`,
      );
      for (const bound of ['webhook', 'healthy', 'degraded', 'host'] as const)
        this.most[bound] = Math.max(this.most[bound], rows[0]?.[bound] ?? 0);
      await wait(2);
    }
  }
}

const formatId = ({ webhookId, eventId }: Run) => `${webhookId}/${eventId}`;

async function readFigures(engine: Engine) {
  const { rows } = await engine.owner.query<
    Record<'open' | 'slots' | 'attempts' | 'openAttempts' | 'unproven' | 'gaps' | 'mostRuns', number>
  >(
    `select (select count(*) from delivery where due_at is not null)::int as open,
       (select count(*) from slot)::int as slots,
       (select count(*) from delivery_attempt)::int as attempts,
       (select count(*) from delivery_attempt where finished_at is null)::int as "openAttempts",
       (select max(run) from delivery)::int as "mostRuns",
       (select count(*) from delivery d where not exists (
         select from delivery_attempt a where a.webhook_id = d.webhook_id and a.event_id = d.event_id
           and case d.state when 'delivered' then a.status = 204
             else a.ends_schedule and a.run = d.run and a.finished_at is not null
               and a.status is distinct from 204 end))::int
         as unproven,
       (select count(*) from receiver r where r.next_sequence - 1 <> (select count(d.sequence) from delivery d
         where d.webhook_id = r.webhook_id) or r.next_sequence - 1 <> (select coalesce(max(d.sequence), 0)
           from delivery d where d.webhook_id = r.webhook_id))::int as gaps`,
  );
  if (rows[0] === undefined) throw new Error('no figures');
  return rows[0];
}
