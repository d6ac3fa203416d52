import { generateSecret } from '#domain/webhooks/secret.ts';
import type { Scenario } from '../scenario.ts';

const verifyFix =
  'Verify webhook-signature with a library for Standard Webhooks, or Service-Signature with Stripe’s, before ' +
  'anything else, and answer 400 when it does not verify.';

/** Which deliveries are genuine. */
export const signature: readonly Scenario[] = [
  {
    name: 'accepts-event',
    title: 'accepts a correctly signed event',
    why: 'Anything but a 2xx within the deadline is a failed attempt, which is repeated for three days.',
    fix:
      'Check that the receiver has this secret, and chooses it by webhook-endpoint if it has several (--endpoint). ' +
      'Answer 2xx, and follow no redirect: register the URL that answers itself.',
    async run(probe) {
      await probe.accept('a correctly signed client.started', probe.started());
    },
  },
  {
    name: 'rejects-bad-signature',
    title: 'rejects an event that another secret has signed',
    why: 'Anyone who knows the URL could send events.',
    fix: verifyFix,
    async run(probe) {
      await probe.reject('an event that another secret has signed', probe.started(), { secrets: [generateSecret()] });
    },
  },
  {
    name: 'rejects-missing-signature',
    title: 'rejects an event without signatures',
    why: 'Anyone who knows the URL could send events by leaving the headers out.',
    fix: `${verifyFix} A missing header is not a reason to skip it.`,
    async run(probe) {
      const headers = { 'Service-Signature': undefined, 'webhook-signature': undefined };
      await probe.reject('an event without signatures', probe.started(), { headers });
    },
  },
  {
    name: 'rejects-changed-body',
    title: 'rejects a body that was changed after it was signed',
    why: 'A signature that does not cover the body lets anyone put another event below it.',
    fix: `${verifyFix} Give it the body’s bytes.`,
    async run(probe) {
      const body = JSON.stringify(probe.started());
      await probe.reject('a body that another event’s signature came with', probe.started(), { body });
    },
  },
  {
    name: 'rejects-old-timestamp',
    title: 'rejects what was signed more than five minutes ago',
    why: 'Anyone who recorded a delivery could send it again at any time.',
    fix: 'Reject a timestamp that is more than five minutes from your clock, and do not raise a library’s tolerance.',
    async run(probe) {
      await probe.reject('an event that was signed 10 minutes ago', probe.started(), { ageSeconds: 600 });
    },
  },
  {
    name: 'rejects-future-timestamp',
    title: 'rejects what is signed for more than five minutes from now',
    why: 'A delivery that is signed for next year would stay valid until then.',
    fix: 'Compare the distance of the timestamp from your clock in both directions.',
    async run(probe) {
      await probe.reject('an event that is signed for 10 minutes from now', probe.started(), { ageSeconds: -600 });
    },
  },
  {
    name: 'verifies-bytes',
    title: 'verifies the bytes of the body, not JSON that was parsed and written again',
    why: 'An event may contain any valid JSON, also escapes and letters of any language, and would be rejected.',
    fix: 'Read the raw body before a framework parses it (express.raw, request.get_data, await request.body()).',
    async run(probe) {
      const event = probe.started();
      // In one form or another: parsed and written again, it has one length less, or another letter.
      const text = JSON.stringify({ ...event, note: 'é 漢 🙂' })
        .replace('"note":', '"note": ')
        .replace('é', '\\u00e9');
      await probe.accept('an event with spaces, escapes and letters of several languages', event, { text });
    },
  },
  {
    name: 'accepts-rotation',
    title: 'accepts a delivery that two secrets sign, whichever of them it has',
    why: 'While a secret is rotated each delivery has a signature of both, and all would be rejected.',
    fix: 'Compare every v1 signature of the header, and accept when one matches.',
    async run(probe) {
      const [own = ''] = probe.options.secrets;
      const other = generateSecret();
      const what = 'a delivery with two signatures, of which the';
      await probe.accept(`${what} second is valid`, probe.started(), { secrets: [other, own] });
      await probe.accept(`${what} first is valid`, probe.started(), { secrets: [own, other] });
    },
  },
  {
    name: 'accepts-each-secret',
    title: 'accepts what each of its secrets has signed',
    why: 'A receiver that has the old and the new secret needs both until the old one has ended.',
    fix: 'Try every secret of the endpoint.',
    async run(probe) {
      for (const [index, secret] of probe.options.secrets.entries())
        await probe.accept(`an event that its secret ${index + 1} has signed`, probe.started(), { secrets: [secret] });
    },
  },
];
