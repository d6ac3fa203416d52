import { eventData, eventEnvelope, eventTypes } from '../../contract/events.ts';
import { type CapturedHeaders, readHeader } from './captured-headers.ts';

/** One of the two signature forms of a captured delivery. */
export interface Form {
  name: 'service_signature' | 'standard_signature';
  /** The signatures that it carries, 32 bytes each. */
  macs: readonly Buffer[];
  /** The signature that a secret gives for a body. */
  computeMac(secret: string, body: Buffer): Buffer;
}

/** Changes of a body on its way; `undo` returns the body before the change, or null. */
const changes: { undo: (text: string) => string | null; what: string }[] = [
  { undo: (text) => text.replace(/^\uFEFF/, ''), what: 'a byte order mark was added before it' },
  { undo: (text) => text.replace(/(\r?\n)+$/, ''), what: 'a line break was added to it' },
  { undo: (text) => writeCompact(text, (event) => event), what: 'it was parsed and serialized differently' },
  { undo: (text) => writeCompact(text, inOurOrder), what: 'it was parsed and serialized in another order' },
  { undo: findInner, what: 'it was encoded as a JSON string again' },
];

/** Explains in a sentence with the remedy why no given secret gives the signature. */
export function explainMismatch(
  form: Form,
  capture: { headers: CapturedHeaders; body: Buffer; othersMatch: boolean; isSigned: (body: Buffer) => boolean },
): string {
  const { headers, body, othersMatch, isSigned } = capture;
  if (othersMatch) {
    const changed =
      form.name === 'service_signature'
        ? 'Service-Signature was'
        : 'webhook-id, webhook-timestamp or webhook-signature was';
    return (
      `The other form verifies with this secret and body, so ${changed} changed on the way or belongs to another ` +
      'attempt.'
    );
  }
  const text = body.toString('utf8');
  const change = changes.find(({ undo }) => {
    const original = undo(text);
    return original !== null && original !== text && isSigned(Buffer.from(original));
  });
  if (change) {
    return (
      `The body is not what was sent, because ${change.what}: verify the raw bytes, before any parsing, and parse ` +
      'them afterwards.'
    );
  }
  const announced = readHeader(headers, 'Content-Length');
  if ('value' in announced && Number(announced.value) !== body.length) {
    return (
      `The body has ${body.length} bytes and Content-Length says ${announced.value}, so it was changed or ` +
      'cut: verify the raw bytes, before any parsing.'
    );
  }
  return (
    'No given secret gives this signature: the secret belongs to another webhook or was rotated ' +
    'out, or the body was changed. Compare the secret with the one shown when the webhook was ' +
    'created or last rotated, and verify the raw bytes, before any parsing.'
  );
}

/** Returns a text's JSON without white space and needless escapes; null when it is not JSON. */
function writeCompact(text: string, arrange: (value: unknown) => unknown): string | null {
  try {
    return JSON.stringify(arrange(JSON.parse(text)));
  } catch {
    return null;
  }
}

/** Returns an event's members, and those of its `data`, in the contract's order; others follow. */
function inOurOrder(event: unknown): unknown {
  const type = eventTypes.find((candidate) => isObject(event) && event.type === candidate);
  if (!isObject(event) || type === undefined) return event;
  const ordered = order(event, Object.keys(eventEnvelope(type).shape));
  return isObject(event.data) ? { ...ordered, data: order(event.data, Object.keys(eventData[type].shape)) } : ordered;
}

function order(members: Record<string, unknown>, names: string[]): Record<string, unknown> {
  return {
    ...Object.fromEntries(names.filter((name) => name in members).map((name) => [name, members[name]])),
    ...members,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Returns the text inside a JSON string, or null. */
function findInner(text: string): string | null {
  try {
    const inner: unknown = JSON.parse(text);
    return typeof inner === 'string' ? inner : null;
  } catch {
    return null;
  }
}
