import { createPublicKey, type webcrypto } from 'node:crypto';
import { decodeCredentialPublicKey } from '@simplewebauthn/server/helpers';

/** Bits of the smallest RSA key that is accepted. */
const rsaMinBits = 2_048;

/** Labels of a COSE key (RFC 9053). */
const label = { type: 1, curveOrModulus: -1, xOrExponent: -2, y: -3 };
const types = { okp: 1, rsa: 3 };

/**
 * Returns whether a passkey's public key is whole: a point on its curve, or a modulus of a safe
 * length. The library stores a key as it was sent, also one that is cut off, with which its person
 * could never sign in.
 */
export function isWholePublicKey(encoded: Uint8Array): boolean {
  try {
    const jwk = buildJwk(decodeCredentialPublicKey(new Uint8Array(encoded)) as unknown as Map<number, unknown>);
    const { asymmetricKeyDetails } = createPublicKey({ key: jwk, format: 'jwk' });
    return (asymmetricKeyDetails?.modulusLength ?? rsaMinBits) >= rsaMinBits;
  } catch {
    return false;
  }
}

/** @throws when a part is missing, of another type, or not as long as its curve demands. */
function buildJwk(key: Map<number, unknown>): webcrypto.JsonWebKey {
  const part = (name: number, length?: number): string => {
    const bytes = key.get(name);
    if (!(bytes instanceof Uint8Array) || (length !== undefined && bytes.length !== length))
      throw new TypeError('a part of the public key is missing or cut off');
    return Buffer.from(bytes).toString('base64url');
  };
  const type = key.get(label.type);
  if (type === types.rsa) return { kty: 'RSA', n: part(label.curveOrModulus), e: part(label.xOrExponent) };
  if (type === types.okp) return { kty: 'OKP', crv: 'Ed25519', x: part(label.xOrExponent, 32) };
  return { kty: 'EC', crv: 'P-256', x: part(label.xOrExponent, 32), y: part(label.y, 32) };
}
