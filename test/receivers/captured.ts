/** Deliveries as receivers capture them, signed now: each with who has to accept it. The format is in README.md. */
import { makeSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';

/** One line of what `check` reads. */
export interface Captured {
  headers: Record<string, string>;
  /** base64 */
  body: string;
  secret: string;
}

export interface Case {
  name: string;
  captured: Captured;
  /** Whether a library accepts it, by the library's name. */
  isAcceptedBy: (library: string) => boolean;
}

const vectorId = '3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10';

/** An event that is not ASCII only, so that a receiver which decodes and encodes the body on its way is found out. */
const bodyOf = (id: string) =>
  `{"id":"${id}","type":"client.started","createdAt":"2026-01-01T00:00:00.000Z","organization":{"id":"0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d"},"data":{"grantId":"7f3c2f0e-6a1b-4d0e-8f57-2b9a4c1d5e6f","kind":"attorney","note":"é 漢 🙂"}}`;

/** What a delivery is made of; all but `signing` has a default. */
interface Parts {
  /** The secrets that sign, newest first. */
  signing: string[];
  id?: string;
  /** The secret that the receiver holds: the first of `signing` unless it is another. */
  held?: string;
  /** How long ago it was signed. */
  ageSeconds?: number;
  /** The body that arrives in place of the signed one. */
  arriving?: string;
  headers?: Record<string, string>;
}

/** A delivery signed `ageSeconds` before now. */
export function capture({ signing, id = vectorId, ageSeconds = 0, ...received }: Parts): Captured {
  const timestampSeconds = Math.floor(Date.now() / 1000) - ageSeconds;
  const signed = signatureHeaders({ id, timestampSeconds, body: bodyOf(id), secrets: signing });
  return {
    headers: { ...signed, ...received.headers },
    body: Buffer.from(received.arriving ?? bodyOf(id)).toString('base64'),
    secret: received.held ?? signing[0] ?? '',
  };
}

/** Every case, signed when this is called: libraries allow 5 minutes. */
export function captureCases(): Case[] {
  const [older, newer] = [makeSecret(), makeSecret()];
  const everyone = () => true;
  const nobody = () => false;
  const text = bodyOf(vectorId);
  const rewritten = JSON.stringify(JSON.parse(text), null, 2);
  const cases: [name: string, parts: Parts, isAcceptedBy: Case['isAcceptedBy']][] = [
    ["in the middle of a secret's life", { signing: [older] }, everyone],
    ['before a rotation, by who holds the new secret already', { signing: [older], held: newer }, nobody],
    ['during a rotation, by who holds the old secret', { signing: [newer, older], held: older }, everyone],
    ['during a rotation, by who holds the new secret', { signing: [newer, older], held: newer }, everyone],
    ['after a rotation, by who holds the new secret', { signing: [newer] }, everyone],
    ['after a rotation, by who holds the old secret still', { signing: [newer], held: older }, nobody],
    ['240 seconds old', { signing: [older], ageSeconds: 240 }, everyone],
    ['400 seconds old', { signing: [older], ageSeconds: 400 }, nobody],
    ['with one letter changed', { signing: [older], arriving: text.replace('attorney', 'attorneY') }, nobody],
    ['with a body that was parsed and written again', { signing: [older], arriving: rewritten }, nobody],
    ['with a line end behind the body', { signing: [older], arriving: `${text}\n` }, nobody],
    ['without signatures', { signing: [older], headers: { 'Service-Signature': '', 'webhook-signature': '' } }, nobody],
    // The Stripe form does not cover the header: that is why receivers know a repeat by the id in the body.
    [
      'with another webhook-id',
      { signing: [older], headers: { 'webhook-id': 'another' } },
      (name) => name === 'stripe',
    ],
  ];
  return cases.map(([name, parts, isAcceptedBy]) => ({ name, captured: capture(parts), isAcceptedBy }));
}
