import { timingSafeEqual } from 'node:crypto';
import { getSecretBytes, isSecret } from '../secret.ts';
import { type Signable, serviceMac, standardMac } from '../sign.ts';
import { type CapturedHeaders, readServiceSignature, readStandardSignature } from './captured-headers.ts';
import { type Check, checkAge, checkHeader, checkId, checkSecrets, checkTimesAgree } from './delivery-checks.ts';
import { explainMismatch, type Form } from './mismatch.ts';

export type { Check, CheckName } from './delivery-checks.ts';

/**
 * Verifies a captured delivery offline, for a receiver's developer who asks why it does not verify.
 *
 * A receiver needs one of the two forms and a library; this checks both and says what is wrong
 * with each.
 */

/** `ok` when every check is. Checks that an earlier problem makes impossible are left out. */
export interface Verification {
  ok: boolean;
  checks: Check[];
}

export interface CapturedDelivery {
  headers: CapturedHeaders;
  /** The bytes as they came, before any parsing. */
  body: Buffer;
  /** The secrets that the receiver holds, in any order. */
  secrets: readonly string[];
  /** How far the time may be from `now`, both ways. Off-the-shelf libraries allow 300. */
  toleranceSeconds?: number;
  now?: Date;
}

/** Makes every check that can be made, in constant time. Never throws over what was captured. */
export function verifyDelivery(delivery: CapturedDelivery): Verification {
  const { headers, body, toleranceSeconds = 300, now = new Date() } = delivery;
  const secrets = delivery.secrets.filter(isSecret);
  const service = readServiceSignature(headers);
  const standard = readStandardSignature(headers);
  const checks = [
    checkSecrets(delivery.secrets),
    checkHeader('service_signature_header', service),
    checkHeader('standard_headers', standard),
  ];
  const times = [service, standard].flatMap((read) => ('value' in read ? read.value.timestampSeconds : []));
  if (times.length === 2) checks.push(checkTimesAgree(times));
  const [timestampSeconds] = times;
  if (timestampSeconds !== undefined) checks.push(checkAge(timestampSeconds, now, toleranceSeconds));
  if ('value' in standard) checks.push(checkId(standard.value.id, body));
  if (secrets.length > 0) {
    const forms = [
      ...('value' in service ? [serviceForm(service.value)] : []),
      ...('value' in standard ? [standardForm(standard.value)] : []),
    ];
    const matches = forms.map((form) => findSigner(form, body, secrets));
    for (const [index, form] of forms.entries()) {
      const othersMatch = matches.some((signer, other) => other !== index && signer !== null);
      checks.push(checkSignature(form, matches[index] ?? null, { headers, body, secrets, othersMatch }));
    }
  }
  return { ok: checks.every((check) => check.ok), checks };
}

function serviceForm({ timestampSeconds, macs }: Omit<Signable, 'id' | 'body'> & { macs: Buffer[] }): Form {
  return {
    name: 'service_signature',
    macs,
    computeMac: (secret, body) => serviceMac(secret, { timestampSeconds, body }),
  };
}

function standardForm({ id, timestampSeconds, macs }: Omit<Signable, 'body'> & { macs: Buffer[] }): Form {
  const computeMac: Form['computeMac'] = (secret, body) =>
    standardMac(getSecretBytes(secret), { id, timestampSeconds, body });
  return { name: 'standard_signature', macs, computeMac };
}

/**
 * Which of `secrets` made a signature of the form for `body`, counted from 1; null when none did.
 */
function findSigner({ macs, computeMac }: Form, body: Buffer, secrets: readonly string[]): number | null {
  const signer = secrets.findIndex((secret) => {
    const expected = computeMac(secret, body);
    return macs.filter((mac) => timingSafeEqual(mac, expected)).length > 0;
  });
  return signer < 0 ? null : signer + 1;
}

function checkSignature(
  form: Form,
  signer: number | null,
  context: { headers: CapturedHeaders; body: Buffer; secrets: readonly string[]; othersMatch: boolean },
): Check {
  const { headers, body, secrets, othersMatch } = context;
  if (signer !== null) {
    const which = secrets.length === 1 ? 'the secret' : `secret ${signer} of the ${secrets.length} well-formed ones`;
    return { name: form.name, ok: true, explanation: `Signed with ${which} for this time and body.` };
  }
  const isSigned = (candidate: Buffer) => findSigner(form, candidate, secrets) !== null;
  return { name: form.name, ok: false, explanation: explainMismatch(form, { headers, body, othersMatch, isSigned }) };
}
