/** Random sequences of calls, of the clock and of the worker's step, beside a model of a few rules. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { beginDueGrantsSql, endDueGrantsSql } from '#domain/clients/due-grants.ts';
import { setupPlatform } from '#test/platform.ts';
import { openPool } from '#test/webhook-rows.ts';
import { GrantModel } from './scheduled-model.ts';

const hourMs = 3_600_000;
const professionals = ['usr_a', 'usr_b', 'usr_c'];

/** Picks one of the grants so far, by the remainder. */
const nth = fc.nat(50);
const who = fc.nat(2);
const action = fc.oneof(
  fc.record({
    does: fc.constant('start'),
    who,
    family: fc.nat(2),
    sinceIn: fc.constantFrom(-1.5, null, 0.5, 1.5, 2.5),
    lasts: fc.constantFrom(null, null, 1, 2),
  }),
  fc.record({ does: fc.constant('end'), nth, reason: fc.constantFrom('ended', 'ended', 'moved') }),
  fc.record({ does: fc.constant('move'), nth, who }),
  fc.record({ does: fc.constant('seat'), nth }),
  fc.record({ does: fc.constant('plan'), nth, endsIn: fc.constantFrom(-0.75, 0.25, 1.25, 2.25) }),
  fc.record({ does: fc.constant('repeat'), nth }),
  fc.record({ does: fc.constantFrom('tick', 'tick', 'work') }),
);
type Action = { does: string; nth: number; who: number; family: number; reason: 'ended' | 'moved' } & {
  sinceIn: number | null;
  lasts: number | null;
  endsIn: number;
};

async function setupSequences() {
  const t = await setupPlatform();
  const worker = await openPool(t.database.urls.worker, 1);
  /** Each answer and state that occurred. */
  const seen = new Set<string>();

  /** An organization beside its model. `actions` carry out one on both; `id` is a grant that exists. */
  async function createOrganization() {
    const { organization } = await t.create(100);
    const families = [randomUUID(), randomUUID(), randomUUID()];
    for (const id of families) await t.call('put_family', { organization, id, name: 'Rossi' });
    for (const member of professionals)
      await t.call('put_member', { organization, member, name: member, email: `${member}@example.org`, roles: [] });
    const model = new GrantModel();
    const begunAt = Date.now();
    const calls: { name: string; values: Record<string, unknown>; apply: () => string }[] = [];
    /** The clock of the database continues by itself; an hour of the model moves what is stored. */
    const at = (hours: number | null) =>
      hours === null ? null : new Date(begunAt + (hours - model.now) * hourMs).toISOString();
    /** Calls the function, and the model. */
    const call = async (name: string, values: Record<string, unknown>, apply: () => string): Promise<void> => {
      const result = await t.call(name, { organization, ...values });
      const code = /^\w+ (\w+):/.exec(result)?.[1] ?? result;
      seen.add(`${name} ${code}`);
      expect([name, code]).toEqual([name, model.call(apply)]);
    };
    const hours = (after: number | null) => (after === null ? null : model.now + after);
    const actions: Record<string, (action: Action, id: string) => Promise<void>> = {
      async start({ who, family, sinceIn, lasts }) {
        const grant = { id: randomUUID(), professional: professionals[who] ?? '', family: families[family] ?? '' };
        const since = hours(sinceIn);
        const ends = lasts === null ? null : (since ?? model.now + 0.5) + lasts;
        const apply = () => model.start({ ...grant, since, ends });
        await call('start_grant', { ...grant, kind: 'neutral', since: at(since), ends_at: at(ends) }, apply);
        calls.push({ name: 'start_grant', values: { ...grant, kind: 'neutral' }, apply });
      },
      end: ({ reason }, id) => call('end_grant', { id, reason }, () => model.end(id, reason)),
      seat: (_, id) => call('give_seat', { id: randomUUID(), grant_id: id }, () => model.assignSeat(id)),
      async plan({ endsIn }, id) {
        const ends = model.now + endsIn;
        await call('plan_end', { id, ends_at: at(ends) }, () => model.planEnd(id, ends));
      },
      async move({ who }, id) {
        const values = { id, new_id: randomUUID(), professional: professionals[who] ?? '' };
        const apply = () => model.move(id, values.new_id, values.professional);
        await call('move_grant', values, apply);
        if (model.grants.has(values.new_id)) calls.push({ name: 'move_grant', values, apply });
      },
      async repeat({ nth }) {
        const late = calls[nth % calls.length];
        if (late !== undefined) await call(late.name, late.values, late.apply);
      },
    };
    return { organization, model, actions };
  }

  /** Lets an hour pass, for the organization. */
  async function tick(organization: string, model: GrantModel): Promise<void> {
    await t.owner.pool.query(
      `update client_grant set since = since - interval '1 hour', ends_at = ends_at - interval '1 hour'
       where organization_id = $1`,
      [organization],
    );
    model.now += 1;
  }

  async function work(model: GrantModel): Promise<void> {
    await worker.query(beginDueGrantsSql);
    await worker.query(endDueGrantsSql);
    model.work();
  }

  async function compare(does: string, organization: string, model: GrantModel): Promise<void> {
    const { rows } = await t.owner.pool.query(
      `select
         (select coalesce(json_agg(json_build_array(g.id, g.status) order by g.id), '[]') from api.client_grant g
           where g.organization_id = $1) as roster,
         (select coalesce(json_object_agg(g.id, json_build_array(g.status, array(
             select e.type from platform.event e where e.grant_id = g.id order by e.id))), '{}')
           from client_grant g where g.organization_id = $1) as stored,
         (select coalesce(sum(c.changes), 0)::int from ledger_count c where c.organization_id = $1) as changes,
         (select count(*)::int from event e where e.organization_id = $1) as events`,
      [organization],
    );
    const grants = [...model.grants.values()];
    const events = grants.flatMap((grant) => grant.events).length;
    expect({ does, ...rows[0] }).toEqual({
      does,
      roster: model.listRoster(),
      stored: Object.fromEntries(grants.map((grant) => [grant.id, [grant.status, grant.events]])),
      changes: events,
      events,
    });
    for (const { status } of grants) seen.add(status);
  }

  async function runSequence(sequence: Action[]): Promise<void> {
    const { organization, model, actions } = await createOrganization();
    for (const next of sequence) {
      const ids = [...model.grants.keys()];
      const id = ids[(next.nth ?? 0) % ids.length];
      if (next.does === 'tick') await tick(organization, model);
      else if (next.does === 'work') await work(model);
      else if (id !== undefined || next.does === 'start') await actions[next.does]?.(next, id ?? '');
      await compare(next.does, organization, model);
    }
  }
  return { runSequence, seen };
}

it('access that lies ahead follows the model in answers, roster, events and ledger: 40 random sequences', async () => {
  const { runSequence, seen } = await setupSequences();
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 15, maxLength: 25, size: 'max' }), (actions) =>
      runSequence(actions as Action[]),
    ),
    { numRuns: 40, seed: 45 },
  );
  expect([...seen].sort()).toEqual([
    'active',
    'end_grant changed',
    'end_grant grant_has_ended',
    'end_grant unchanged',
    'ended',
    'give_seat created',
    'give_seat family_has_seat',
    'give_seat grant_not_active',
    'move_grant changed',
    'move_grant grant_has_ended',
    'move_grant same_professional',
    'move_grant unchanged',
    'plan_end changed',
    'plan_end ends_before_it_begins',
    'plan_end ends_in_past',
    'plan_end grant_has_ended',
    'plan_end unchanged',
    'scheduled',
    'start_grant created',
    'start_grant unchanged',
    'withdrawn',
  ]);
}, 300_000);
