import { generateSecret } from '#domain/webhooks/secret.ts';
import { Finding, isAccepted, type Probe, type ProbeEvent, readMember, reportFix } from '../probe.ts';
import type { Scenario } from '../scenario.ts';
import { describeRead } from '../state.ts';

/** @throws Finding unless the event was applied once. @throws NotJudged without the state. */
async function assertAppliedOnce(probe: Probe, event: ProbeEvent): Promise<void> {
  const state = await probe.state({ event: event.id });
  const times = readMember(state, 'events')[event.id] ?? 0;
  const read = describeRead(state, 'events', event.id);
  if (times !== 1) throw new Finding(`It applied the event ${times === 0 ? 'not at all' : `${times} times`}: ${read}.`);
}

const rememberFix =
  'Insert the event’s id (of the body, which is signed) into a table with a unique key, in the transaction of the ' +
  'effect. When the row is there already, do nothing and answer 2xx.';

/** What arrives more than once, and first whether the state shows it. */
export const repeats: readonly Scenario[] = [
  {
    name: 'reports-state',
    title: 'reports with --state-url what it applied',
    why: 'Whether an event was applied, how often and in which order cannot be judged without it.',
    fix: reportFix,
    async run(probe) {
      await probe.state({});
    },
  },
  {
    name: 'accepts-repeat',
    title: 'answers a repeat with 2xx',
    why: 'When its first answer is lost, the event comes again; a rejected repeat fails for three days.',
    fix: 'Answer 2xx to an event whose id you know.',
    async run(probe) {
      const event = probe.started();
      const sequence = probe.nextSequence();
      await probe.accept('an event', event, { sequence });
      await probe.accept('the same event again', event, { sequence, headers: { 'webhook-attempt': '2' } });
    },
  },
  {
    name: 'applies-repeat-once',
    title: 'applies an event once that arrives twice',
    why: 'Effects such as an e-mail or an entry would happen twice.',
    fix: rememberFix,
    async run(probe) {
      const event = probe.started();
      const sequence = probe.nextSequence();
      await probe.accept('an event', event, { sequence });
      await probe.accept('the same event again', event, { sequence });
      await assertAppliedOnce(probe, event);
    },
  },
  {
    name: 'applies-simultaneous-repeat-once',
    title: 'applies an event once that arrives twice at the same time',
    why: 'A receiver that looks first and writes later applies both.',
    fix: `${rememberFix} Do not look with a statement of its own before.`,
    async run(probe) {
      const event = probe.started();
      const sequence = probe.nextSequence();
      const answers = await Promise.all(Array.from({ length: 5 }, () => probe.send(event, { sequence })));
      // A busy one may reject all but one; they come again.
      if (!answers.some(isAccepted)) throw new Finding('It accepted none of five deliveries of one event at once.');
      await assertAppliedOnce(probe, event);
    },
  },
  {
    name: 'forged-event-blocks-nothing',
    title: 'applies a genuine event after a forged one with the same id',
    why: 'A forged delivery could make the receiver take the genuine one for a repeat.',
    fix: 'Remember an id only after its signature is verified.',
    async run(probe) {
      const event = probe.started();
      await probe.reject('a forged event', event, { secrets: [generateSecret()] });
      await probe.accept('the genuine event after a forged one', event);
      await assertAppliedOnce(probe, event);
    },
  },
];
