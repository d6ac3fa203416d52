import { createHash } from 'node:crypto';
import {
  type AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type WebAuthnCredential,
} from '@simplewebauthn/server';
import { decodeAttestationObject, isoCBOR } from '@simplewebauthn/server/helpers';
import { IdentityError } from './errors.ts';
import { challengeMinutes } from './limits.ts';
import { isWholePublicKey } from './passkey-key.ts';
import type { RelyingParty } from './types.ts';

/** Passkeys (WebAuthn). The authenticator verifies its user; its make is neither requested nor checked. */

export interface StoredPasskey {
  credentialId: string;
  publicKey: Buffer;
  counter: number;
  transports: string[];
}

const timeout = challengeMinutes * 60_000;
/** COSE numbers of EdDSA, ES256, RS256; the library's choice needs an experimental runtime part. */
const algorithms = [-8, -7, -257];

const transportNames = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'];

/** Returns what `navigator.credentials.create` takes. `known` passkeys are not offered again. */
export function passkeySetupOptions(
  person: { personId: string; email: string; name: string },
  known: readonly string[],
  party: RelyingParty,
) {
  return generateRegistrationOptions({
    rpName: party.name,
    rpID: party.id,
    userName: person.email,
    userDisplayName: person.name,
    timeout,
    // At most 64 bytes, and no internal id on another's device.
    userID: new Uint8Array(createHash('sha256').update(`passkey\0${person.personId}`).digest()),
    attestationType: 'none',
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: known.map((id) => ({ id })),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
  });
}

/** Returns what `navigator.credentials.get` takes, as JSON, for one of these passkeys. */
export function passkeyUseOptions(known: readonly StoredPasskey[], party: RelyingParty) {
  return generateAuthenticationOptions({
    rpID: party.id,
    timeout,
    userVerification: 'required' as const,
    allowCredentials: known.map(({ credentialId, transports }) => ({ id: credentialId, transports })),
  });
}

/**
 * Returns the new passkey in an untrusted response.
 *
 * @throws IdentityError `passkey_attested`, `wrong_passkey`
 */
export async function getNewPasskey(response: unknown, challenge: string, party: RelyingParty): Promise<StoredPasskey> {
  const result = await verifyRegistrationResponse({
    response: withoutAttestation(response),
    ...expected(challenge, party),
    requireUserVerification: true,
    supportedAlgorithmIDs: algorithms,
  }).catch(notAccepted);
  if (!result?.verified) throw wrongPasskey();
  const { id, publicKey, counter, transports } = result.registrationInfo.credential;
  if (!isWholePublicKey(publicKey)) throw wrongPasskey();
  return { credentialId: id, publicKey: Buffer.from(publicKey), counter, transports: knownTransports(transports) };
}

/**
 * Returns a response with the attestation format `none`, so that the library runs no code for
 * certificates: it fetches the addresses that they name, of any server.
 *
 * A response with a certificate is rejected. Browsers that honor `none` never send one, but they
 * may send the signature of the passkey itself (format `packed`), which says nothing about a
 * device.
 *
 * @throws IdentityError `passkey_attested`; `wrong_passkey` when it cannot be decoded.
 */
function withoutAttestation(credential: unknown): RegistrationResponseJSON {
  const response = getProperty(credential, 'response');
  const { statement, authData } = decodeAttestation(getProperty(response, 'attestationObject'));
  for (const key of statement.keys()) if (key !== 'alg' && key !== 'sig') throw passkeyAttested();
  const none = new Map<string, unknown>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', authData],
  ]);
  const attestationObject = Buffer.from(isoCBOR.encode(none as never)).toString('base64url');
  return {
    ...(credential as object),
    response: { ...(response as object), attestationObject },
  } as RegistrationResponseJSON;
}

function decodeAttestation(encoded: unknown): { statement: Map<unknown, unknown>; authData: Uint8Array } {
  if (typeof encoded !== 'string') throw wrongPasskey();
  try {
    const decoded: unknown = decodeAttestationObject(new Uint8Array(Buffer.from(encoded, 'base64url')));
    const [statement, authData] = decoded instanceof Map ? [decoded.get('attStmt'), decoded.get('authData')] : [];
    if (statement instanceof Map && authData instanceof Uint8Array) return { statement, authData };
  } catch {} // no CBOR
  throw wrongPasskey();
}

/**
 * Returns the counter of a passkey that has answered a challenge correctly; it never decreases.
 *
 * @throws IdentityError `wrong_passkey`
 */
export async function getNewCounter(
  response: unknown,
  passkey: StoredPasskey,
  challenge: string,
  party: RelyingParty,
): Promise<number> {
  const { credentialId, counter, publicKey } = passkey;
  const credential: WebAuthnCredential = { id: credentialId, counter, publicKey: new Uint8Array(publicKey) };
  const result = await verifyAuthenticationResponse({
    response: response as AuthenticationResponseJSON,
    ...expected(challenge, party),
    credential,
    requireUserVerification: true,
  }).catch(notAccepted);
  if (!result?.verified) throw wrongPasskey();
  return result.authenticationInfo.newCounter;
}

/** Returns the id of the passkey in a response, or null for anything else. */
export function findCredentialId(response: unknown): string | null {
  const id = getProperty(response, 'id');
  return typeof id === 'string' ? id : null;
}

/**
 * Returns the challenge in a response, from what the authenticator has signed (`clientDataJSON`),
 * or null. It only selects the stored challenge to compare with: the signature is verified over it.
 */
export function findAnsweredChallenge(response: unknown): string | null {
  const inner = getProperty(response, 'response');
  const encoded = getProperty(inner, 'clientDataJSON');
  if (typeof encoded !== 'string') return null;
  try {
    const challenge = getProperty(JSON.parse(Buffer.from(encoded, 'base64url').toString()), 'challenge');
    return typeof challenge === 'string' && /^[\w-]{1,200}$/.test(challenge) ? challenge : null;
  } catch {
    return null;
  }
}

/** The library returns the sent transports as they are; browsers ignore those they do not know. */
const knownTransports = (sent: unknown): string[] =>
  Array.isArray(sent) ? transportNames.filter((name) => sent.includes(name)) : [];

const getProperty = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

const expected = (challenge: string, { id, origin }: RelyingParty) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: id,
});

/** The library throws for every fault of a response; each means that the response is not accepted. */
const notAccepted = () => null;

export const wrongPasskey = () =>
  new IdentityError('wrong_passkey', 'The passkey was not accepted. Try again, or use another second factor.');

const passkeyAttested = () =>
  new IdentityError(
    'passkey_attested',
    'Your browser sent a certificate of the device with the passkey, which the console does not accept. Use another ' +
      'browser or device, or an authenticator app.',
  );
