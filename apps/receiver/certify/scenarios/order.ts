import { randomUUID } from 'node:crypto';
import { Finding, type Probe, type ProbeEvent, readMember } from '../probe.ts';
import type { Scenario } from '../scenario.ts';
import { describeRead } from '../state.ts';

/** @throws Finding unless the grant or seat is in that state. @throws NotJudged without the state. */
async function assertState(
  probe: Probe,
  subject: { grant: string } | { seat: string },
  expected: 'active' | 'ended',
  what: string,
): Promise<void> {
  const state = await probe.state(subject);
  const [member, id] = 'grant' in subject ? (['grants', subject.grant] as const) : (['seats', subject.seat] as const);
  if (readMember(state, member)[id] !== expected)
    throw new Finding(`${what} is not ${expected}: ${describeRead(state, member, id)}.`);
}

const orderFix =
  'Store with each subject the position of the last event that you applied: createdAt, and within a millisecond ' +
  'webhook-sequence as a number. Answer an earlier event with 2xx, and do not apply it.';

/** What arrives in another order than it happened. */
export const order: readonly Scenario[] = [
  {
    name: 'accepts-late-event',
    title: 'answers 2xx to an event that a later one has overtaken',
    why: 'A rejected event is repeated for three days, and can never be accepted.',
    fix: 'Answer 2xx to an event that you do not apply because of its order, also to the start of an ended client.',
    async run(probe) {
      const grantId = randomUUID();
      const [started, ended] = [probe.started(grantId), probe.ended(grantId)];
      await probe.accept('a client.ended before its client.started', ended);
      await probe.accept('a client.started after its client.ended', started);
    },
  },
  {
    name: 'keeps-ended-client-ended',
    title: 'keeps a client ended whose start arrives after its end',
    why: 'A client whose access has ended would be active again, for ever.',
    fix: orderFix,
    async run(probe) {
      const grant = randomUUID();
      const [started, ended] = [probe.started(grant), probe.ended(grant)];
      const [first, second] = [probe.nextSequence(), probe.nextSequence()];
      await probe.accept('a client.ended', ended, { sequence: second });
      await probe.accept('a late client.started', started, { sequence: first });
      await assertState(probe, { grant }, 'ended', 'A client whose start arrived after its end');
    },
  },
  {
    name: 'orders-by-created-at',
    title: 'orders by createdAt, not by webhook-sequence',
    why:
      'The sequence is the order in which events were first taken up: it can contradict what happened, and two ' +
      'webhooks count apart.',
    fix: orderFix,
    async run(probe) {
      const grant = randomUUID();
      const [started, ended] = [probe.started(grant), probe.ended(grant)];
      await probe.accept('a client.ended', ended);
      await probe.accept('a late client.started with a higher sequence', started);
      await assertState(probe, { grant }, 'ended', 'A client whose start has a higher sequence than its end');
    },
  },
  {
    name: 'orders-within-millisecond',
    title: 'orders by webhook-sequence, as a number, when createdAt is the same',
    why: 'A change and its reverse can happen within a millisecond.',
    fix: orderFix,
    async run(probe) {
      const pairs = [
        { grant: randomUUID(), from: 9 },
        { grant: randomUUID(), from: 11 },
      ];
      for (const { grant, from } of pairs) {
        const started = probe.started(grant);
        const ended: ProbeEvent = { ...probe.ended(grant), createdAt: started.createdAt };
        await probe.accept('a client.ended', ended, { sequence: from + 1 });
        await probe.accept('a client.started of the same millisecond', started, { sequence: from });
      }
      for (const { grant, from } of pairs) {
        const what = `A client whose end has the sequence ${from + 1} and whose start has ${from}`;
        await assertState(probe, { grant }, 'ended', what);
      }
    },
  },
  {
    name: 'keeps-seats-apart',
    title: 'applies the end of a seat after the next seat of its grant was given',
    why: 'A receiver that keeps one order for a whole grant would keep a seat that has ended.',
    fix: 'Keep the order per subject: the seat (seatId) for seat events, and the grant (grantId) for client events.',
    async run(probe) {
      const grantId = randomUUID();
      const [first, second] = [randomUUID(), randomUUID()];
      const given = probe.event('seat.given', { seatId: first, grantId });
      const ended = probe.event('seat.ended', { seatId: first, grantId, reason: 'ended_by_organization' });
      const next = probe.event('seat.given', { seatId: second, grantId });
      for (const event of [given, next, ended]) await probe.accept(`a ${event.type}`, event);
      await assertState(probe, { seat: first }, 'ended', 'A seat that ended before the next was given');
      await assertState(probe, { seat: second }, 'active', 'The next seat of the grant');
    },
  },
  {
    name: 'keeps-clients-and-seats-apart',
    title: 'applies the end of a client after a later event of its seat',
    why: 'Access has ended: a receiver that keeps one order for grant and seats would keep it.',
    fix: 'Keep the order per subject: an event of a seat says nothing about the order of its grant.',
    async run(probe) {
      const grant = randomUUID();
      const seatId = randomUUID();
      const started = probe.started(grant);
      const ended = probe.ended(grant);
      const seatEnded = probe.event('seat.ended', { seatId, grantId: grant, reason: 'access_ended' });
      for (const event of [started, seatEnded, ended]) await probe.accept(`a ${event.type}`, event);
      await assertState(probe, { grant }, 'ended', 'A client whose end arrived after a later event of its seat');
    },
  },
];
