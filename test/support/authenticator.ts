import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

/**
 * A passkey in software: ES256, no attestation unless a test adds one, with the byte layout of
 * WebAuthn level 2 (sections 6.1, 6.5.1, 8.7). On request it does what a real authenticator
 * rejects: another origin, no user verification, a counter that goes back.
 */
export interface Signing {
  origin?: string;
  rpId?: string;
  userVerified?: boolean;
  counter?: number;
  /** Adds an attestation. */
  attest?: (passkey: { privateKey: KeyObject; authData: Buffer; clientDataHash: Buffer }) => Attestation;
}

export interface Attestation {
  format: string;
  /** Each value in CBOR. */
  statement: [string, Buffer][];
}

const rp = { origin: 'https://console.example.org', rpId: 'console.example.org' };

export function createAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const credentialId = randomBytes(32);
  const id = credentialId.toString('base64url');
  return {
    id,
    /** The response to `navigator.credentials.create`. */
    register(challenge: string, signing: Signing = {}) {
      const attested = Buffer.concat([Buffer.alloc(16), uint16(credentialId.length), credentialId, coseKey(publicKey)]);
      const authData = authenticatorData(signing, 0x40, attested);
      const clientDataJSON = clientData('webauthn.create', challenge, signing);
      const clientDataHash = hashClientData(clientDataJSON);
      const { format, statement } = signing.attest?.({ privateKey, authData, clientDataHash }) ?? noAttestation;
      const attestationObject = map([
        [text('fmt'), text(format)],
        [text('attStmt'), map(statement.map(([key, value]) => [text(key), value]))],
        [text('authData'), bytes(authData)],
      ]);
      const response = {
        clientDataJSON,
        attestationObject: attestationObject.toString('base64url'),
        transports: ['internal'],
      };
      return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
    },
    /** The response to `navigator.credentials.get`. */
    sign(challenge: string, signing: Signing = {}) {
      const clientDataJSON = clientData('webauthn.get', challenge, signing);
      const authData = authenticatorData(signing, 0, Buffer.alloc(0));
      const response = {
        clientDataJSON,
        authenticatorData: authData.toString('base64url'),
        signature: signAssertion(privateKey, authData, hashClientData(clientDataJSON)).toString('base64url'),
      };
      return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
    },
  };
}

function clientData(type: string, challenge: string, { origin = rp.origin }: Signing): string {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })).toString('base64url');
}

/**
 * Hash of the relying party, flags (present 1, verified 4, with a credential 0x40), counter, the
 * credential.
 */
function authenticatorData(
  { rpId = rp.rpId, userVerified = true, counter = 0 }: Signing,
  flags: number,
  attested: Buffer,
): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags | 1 | (userVerified ? 4 : 0));
  head.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash('sha256').update(rpId).digest(), head, attested]);
}

const noAttestation: Attestation = { format: 'none', statement: [] };

const hashClientData = (clientDataJSON: string) =>
  createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest();

export const signAssertion = (key: KeyObject, authData: Buffer, clientDataHash: Buffer): Buffer =>
  createSign('sha256')
    .update(Buffer.concat([authData, clientDataHash]))
    .sign(key);

/** COSE: kty 2 (EC2), alg -7 (ES256), crv 1 (P-256), x, y. */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return map([
    [number(1), number(2)],
    [number(3), number(-7)],
    [number(-1), number(1)],
    [number(-2), bytes(Buffer.from(x, 'base64url'))],
    [number(-3), bytes(Buffer.from(y, 'base64url'))],
  ]);
}

/** Encodes the subset of CBOR that this needs (RFC 8949). */
export const number = (n: number) => (n >= 0 ? head(0, n) : head(1, -1 - n));
export const array = (items: Buffer[]) => Buffer.concat([head(4, items.length), ...items]);
const text = (value: string) => Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
export const bytes = (value: Buffer) => Buffer.concat([head(2, value.length), value]);
const map = (entries: [Buffer, Buffer][]) => Buffer.concat([head(5, entries.length), ...entries.flat()]);

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  return Buffer.concat([Buffer.from([(major << 5) | 25]), uint16(value)]);
}

function uint16(value: number): Buffer {
  const two = Buffer.alloc(2);
  two.writeUInt16BE(value);
  return two;
}
