import { randomUUID } from 'node:crypto';
import { eventBytesAtMost, signingSecretsAtMost } from '#domain/webhooks/limits.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { Finding, NotJudged } from '../probe.ts';
import type { Scenario } from '../scenario.ts';
import { describeRead } from '../state.ts';

/** What the service sends, or may send one day. */
export const compatibility: readonly Scenario[] = [
  {
    name: 'accepts-unknown-members',
    title: 'accepts members that it does not know',
    why: 'An event may gain members at any time, and each would be rejected from then on.',
    fix: 'Ignore unknown members of the event and of its data: no strict schema.',
    async run(probe) {
      const event = probe.started(undefined, { region: 'us', actor: { id: randomUUID(), tags: ['new', null] } });
      Object.assign(event.data, { startsOn: '2026-01-01', professional: { name: 'Jane Roe' } });
      await probe.accept('an event with unknown members', event);
    },
  },
  {
    name: 'accepts-unknown-values',
    title: 'accepts a value of kind or reason that it does not know',
    why: 'A list of values may grow. An end of access that is rejected leaves the client active.',
    fix: 'Treat an unknown value as the general case, and still apply the event.',
    async run(probe) {
      const grantId = randomUUID();
      const data = { grantId, kind: 'guardian' };
      await probe.accept('a client.started of an unknown kind', probe.event('client.started', data));
      const ended = probe.event('client.ended', { ...data, reason: 'merged' });
      await probe.accept('a client.ended with an unknown reason', ended);
    },
  },
  {
    name: 'accepts-unknown-type',
    title: 'answers 2xx to an event type that it does not know',
    why: 'When the webhook is subscribed to a new type, its events would fail and be repeated.',
    fix: 'Answer 2xx to a type that you do not handle, after verifying it.',
    async run(probe) {
      const data = { grantId: randomUUID(), transferredTo: randomUUID() };
      await probe.accept('an event of an unknown type', probe.event('client.transferred', data));
    },
  },
  {
    name: 'accepts-operational-event',
    title: 'answers 2xx to an event that is about no seat or grant',
    why: 'A webhook can list events about other webhooks and keys, and they would fail and be repeated.',
    fix: 'Look for grantId and seatId only in the types that have them: the others need no order.',
    async run(probe) {
      const data = {
        keyId: randomUUID(),
        keyPrefix: 'aln_us_0000',
        expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
      };
      await probe.accept('a key.expiring', probe.event('key.expiring', data));
      const suspended = { webhookId: randomUUID(), suspendedAt: new Date().toISOString(), reason: 'gone' };
      await probe.accept('a webhook.suspended', probe.event('webhook.suspended', suspended));
    },
  },
  {
    name: 'accepts-test-event',
    title: 'answers 2xx to a test event',
    why: 'Members test the webhook in the console, and a suspended one is resumed with a test event.',
    fix: 'Verify and answer an event with "test": true like any other. It has no webhook-sequence.',
    async run(probe) {
      await probe.accept('a test event', probe.started(undefined, { test: true }), { sequence: null });
    },
  },
  {
    name: 'ignores-test-event',
    title: 'does not act on a test event',
    why: 'Nothing happened: the ids of a test event name nothing.',
    fix: 'Do nothing else with an event whose "test" is true.',
    async run(probe) {
      const event = probe.started(undefined, { test: true });
      const grant = String(event.data.grantId);
      await probe.accept('a test event', event, { sequence: null });
      const state = await probe.state({ event: event.id, grant });
      if (state.grants === undefined && state.events === undefined)
        throw new NotJudged('--state-url reports no events and no grants.');
      if (state.grants?.[grant] !== undefined)
        throw new Finding(`It applied a test event: ${describeRead(state, 'grants', grant)}.`);
      if ((state.events?.[event.id] ?? 0) > 0)
        throw new Finding(`It applied a test event: ${describeRead(state, 'events', event.id)}.`);
    },
  },
  {
    name: 'accepts-largest-request',
    title: 'accepts the largest request that is sent',
    why: `With ${signingSecretsAtMost} secrets in use the headers are longest, and an event may grow.`,
    fix: 'Allow headers of 8 KiB and bodies of 64 KiB.',
    async run(probe) {
      const [own = ''] = probe.options.secrets;
      const others = Array.from({ length: signingSecretsAtMost - 1 }, () => generateSecret());
      const data = { seatId: randomUUID(), grantId: randomUUID(), reason: 'subscription_ended' };
      const event = probe.event('seat.ended', data);
      const what = `a seat.ended with ${signingSecretsAtMost} signatures in each form`;
      await probe.accept(what, event, { secrets: [...others, own] });
      const grown = probe.started(undefined, { note: '' });
      grown.note = 'x'.repeat(eventBytesAtMost - JSON.stringify(grown).length);
      await probe.accept(`an event of ${eventBytesAtMost / 1024} KiB`, grown);
    },
  },
];
