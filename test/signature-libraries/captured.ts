/**
 * Deliveries as receivers capture them, each with the expected results. The format is in README.md.
 */
import { randomUUID } from 'node:crypto';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import type { Caught, CaughtRotation } from './rotation.ts';

/** One line of the input of `check`. */
export interface Captured {
  headers: Record<string, string>;
  /** base64 */
  body: string;
  secret: string;
}

export interface Case {
  name: string;
  captured: Captured;
  /** Whether a library must accept it, by the library's name. */
  isAcceptedBy: (library: string) => boolean;
}

const vectorId = '3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10';

/** What distinguishes one event from another. */
interface EventFields {
  id: string;
  type: string;
  createdAt: string;
  data: Record<string, unknown>;
}

/**
 * An event with non-ASCII characters, to detect a receiver that decodes and re-encodes the body. Each is of a grant of
 * its own unless `data` names one.
 */
const formatBody = ({ id, type, createdAt, data }: EventFields) =>
  JSON.stringify({
    id,
    type,
    createdAt,
    organization: { id: '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d' },
    data: { grantId: randomUUID(), kind: 'attorney', note: 'é 漢 🙂', ...data },
  });

/** A delivery that no worker sent, signed here with one secret, `ageSeconds` before now. */
export function capture({
  secret,
  ageSeconds = 0,
  endpoint,
  sequence,
  id = vectorId,
  type = 'client.started',
  createdAt = '2026-01-01T00:00:00.000Z',
  data = {},
}: {
  secret: string;
  ageSeconds?: number;
  /** `webhook-endpoint` */
  endpoint?: string;
  /** `webhook-sequence` */
  sequence?: number;
} & Partial<EventFields>): Captured {
  const body = formatBody({ id, type, createdAt, data });
  const timestampSeconds = Math.floor(Date.now() / 1000) - ageSeconds;
  const headers = {
    ...signatureHeaders({ id, timestampSeconds, body, secrets: [secret] }),
    ...(endpoint !== undefined && { 'webhook-endpoint': endpoint }),
    ...(sequence !== undefined && { 'webhook-sequence': String(sequence) }),
  };
  return buildCaptured({ headers, body }, secret);
}

/** A delivery, with the receiver's secret. */
function buildCaptured(
  { headers, body }: { headers: Record<string, string>; body: Buffer | string },
  secret: string,
): Captured {
  return { headers, body: Buffer.from(body).toString('base64'), secret };
}

type IsAcceptedBy = Case['isAcceptedBy'];
const everyone: IsAcceptedBy = () => true;
const noReceiver: IsAcceptedBy = () => false;

/**
 * Every case, from deliveries captured around a rotation. They must be checked at once: libraries
 * allow 5 minutes.
 */
export function captureCases({ older, newer, before, atItsBegin, atItsEnd, after }: CaughtRotation): Case[] {
  const cases: [name: string, captured: Captured, isAcceptedBy: IsAcceptedBy][] = [
    ["in the middle of a secret's life", buildCaptured(before, older), everyone],
    ['before a rotation, by who holds the new secret already', buildCaptured(before, newer), noReceiver],
    ['at the start of a rotation, by who holds the old secret', buildCaptured(atItsBegin, older), everyone],
    ['at the start of a rotation, by who holds the new secret', buildCaptured(atItsBegin, newer), everyone],
    ['at the end of a rotation, by who holds the old secret', buildCaptured(atItsEnd, older), everyone],
    ['at the end of a rotation, by who holds the new secret', buildCaptured(atItsEnd, newer), everyone],
    ['after a rotation, by who holds the new secret', buildCaptured(after, newer), everyone],
    ['after a rotation, by who holds the old secret still', buildCaptured(after, older), noReceiver],
    // A worker signs with the current time, and ASCII, so an older signature and other letters are
    // created here.
    ['240 seconds old, and not ASCII only', capture({ secret: older, ageSeconds: 240 }), everyone],
    ['400 seconds old', capture({ secret: older, ageSeconds: 400 }), noReceiver],
  ];
  for (const [name, delivery, isAcceptedBy] of alter(before)) {
    cases.push([name, buildCaptured(delivery, older), isAcceptedBy]);
  }
  return cases.map(([name, captured, isAcceptedBy]) => ({ name, captured, isAcceptedBy }));
}

/** A delivery, changed in transit. */
function alter({ headers, body }: Caught): [name: string, delivery: Caught, isAcceptedBy: IsAcceptedBy][] {
  const text = body.toString();
  const arriving = (changed: string): Caught => ({ headers, body: Buffer.from(changed) });
  const withHeaders = (changed: Record<string, string>): Caught => ({ headers: { ...headers, ...changed }, body });
  return [
    ['with one letter changed', arriving(text.replace('attorney', 'attorneY')), noReceiver],
    ['with a body that was parsed and written again', arriving(JSON.stringify(JSON.parse(text), null, 2)), noReceiver],
    ['with a line end behind the body', arriving(`${text}\n`), noReceiver],
    ['without signatures', withHeaders({ 'service-signature': '', 'webhook-signature': '' }), noReceiver],
    // The Stripe form does not cover the header, so receivers recognize a repeat by the id in the
    // body.
    ['with another webhook-id', withHeaders({ 'webhook-id': 'another' }), (name) => name === 'stripe'],
  ];
}
