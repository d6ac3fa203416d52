import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SealingKeys } from '../encryption/envelope.ts';
import type { OptionalKind } from './kinds.ts';

/** What a link in a mail turns off: one kind, for one member. */
export interface StoppedMail {
  organizationId: string;
  personId: string;
  kind: OptionalKind;
}

const ids = ({ organizationId, personId, kind }: StoppedMail): string =>
  Buffer.from(JSON.stringify([organizationId, personId, kind])).toString('base64url');

/** The key is derived, so that a signature of a link is none of anything else. */
function sign(text: string, secret: Buffer): Buffer {
  const key = createHmac('sha256', secret).update('org-api: links that turn off mails').digest();
  return createHmac('sha256', key).update(text).digest();
}

/**
 * Returns the address that turns off one kind of mails for one member, and can do nothing else
 * (RFC 8058). It needs no row and has no end; it is the same each time.
 */
export function createStopLink(origin: string, stopped: StoppedMail, [newest]: SealingKeys): string {
  const text = ids(stopped);
  return `${origin}/mail/stop/${text}.${sign(text, newest.secret).toString('base64url')}`;
}

/** Reads the last part of such an address; null when no key has signed it. */
export function readStopLink(part: string, keys: SealingKeys): StoppedMail | null {
  const [, text = '', signature = ''] = /^([\w-]{1,900})\.([\w-]{43})$/.exec(part) ?? [];
  const given = Buffer.from(signature, 'base64url');
  const isSigned = keys.some(({ secret }) => {
    const right = sign(text, secret);
    return right.length === given.length && timingSafeEqual(right, given);
  });
  if (!isSigned) return null;
  const [organizationId, personId, kind] = JSON.parse(Buffer.from(text, 'base64url').toString()) as string[];
  return { organizationId, personId, kind } as StoppedMail;
}
