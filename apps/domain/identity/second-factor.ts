import type { Database, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { reseal } from '../encryption/envelope.ts';
import { consumeChallenge, storeChallenge } from './challenges.ts';
import { IdentityError } from './errors.ts';
import { listPasskeyRows, lockTotpFactors } from './factor-rows.ts';
import { SecondFactor } from './identity.entity.ts';
import { findKnownBrowser, keepBrowser, rememberBrowser } from './known-browsers.ts';
import { findAnsweredChallenge, findCredentialId, getNewCounter, passkeyUseOptions, wrongPasskey } from './passkey.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { consumeRecoveryCode, countRecoveryCodes, wrongRecoveryCode } from './recovery-codes.ts';
import { recordSecondFactor } from './sessions.ts';
import {
  clearFailure,
  countFailure,
  factorSubject,
  ownFailure,
  passwordSubject,
  signInFailure,
} from './sign-in-failures.ts';
import { findTotpStep, totpRow, unsealTotp, wrongCode } from './totp.ts';
import type { FactorSettings, RelyingParty, Session, Visitor } from './types.ts';

/**
 * Verifying the second factor: the second step of signing in, and the step-up of a full session.
 * Each success gives the session a new token; each failure counts. Both are recorded in the
 * audit log.
 */

/**
 * The session's new `token`, and the one of this `browser` after a sign-in, otherwise null. `isNewToken`: whether that
 * one is new; after a sign-in at a provider a known browser keeps its own.
 */
export interface SecondFactorStep {
  token: string;
  browser: string | null;
  isNewToken: boolean;
}

const wrong = { totp: wrongCode, passkey: wrongPasskey, recovery_code: wrongRecoveryCode };
type Step = keyof typeof wrong;

/**
 * Accepts the code of an authenticator app. Each time step is accepted once, and no earlier one
 * after it, also for concurrent calls.
 *
 * @throws IdentityError `wrong_code`, `too_many_attempts`, `session_expired`.
 */
export async function verifyTotp(
  database: Database,
  session: Session,
  { code, visitor }: { code: string; visitor: Visitor },
  settings: Pick<FactorSettings, 'sealingKeys'>,
  now: () => Date = () => new Date(),
): Promise<SecondFactorStep> {
  const consume = async (tx: Transaction) => {
    for (const factor of await lockTotpFactors(tx, session.personId))
      if (consumeTotpCode(factor, code, settings, now())) return true;
    return false;
  };
  return completeStep(database, { session, visitor, step: 'totp', consume }, now);
}

/** Uses up the code when it is this app's. A secret under an older sealing key is sealed again. */
function consumeTotpCode(
  factor: SecondFactor,
  code: string,
  { sealingKeys }: Pick<FactorSettings, 'sealingKeys'>,
  at: Date,
): boolean {
  if (!factor.totpSealed) return false;
  const step = findTotpStep(unsealTotp(factor.totpSealed, factor.id, sealingKeys), code, at);
  if (step === null || !factor.useTotpStep(step, at)) return false;
  factor.totpSealed = reseal(factor.totpSealed, totpRow(factor.id), sealingKeys) ?? factor.totpSealed;
  return true;
}

/**
 * Starts the use of the person's passkeys: returns options for `navigator.credentials.get`, whose
 * response `verifyPasskey` takes; null when they have none.
 */
export async function startPasskeyUse(
  database: Database,
  session: Session,
  party: RelyingParty,
  now: () => Date = () => new Date(),
) {
  const known = await listPasskeyRows(database, session.personId);
  if (known.length === 0) return null;
  const options = await passkeyUseOptions(known, party);
  const { challenge } = options;
  await storeChallenge(database, { sessionId: session.id, purpose: 'passkey_use', challenge }, now());
  return options;
}

/**
 * Accepts the response of a passkey to the session's challenge, and uses up the challenge in any
 * case.
 *
 * @throws IdentityError `wrong_passkey`, also for a late response, another person's passkey, or a
 * counter that decreased; `too_many_attempts`, `session_expired`.
 */
export async function verifyPasskey(
  database: Database,
  session: Session,
  { response, visitor }: { response: unknown; visitor: Visitor },
  party: RelyingParty,
  now: () => Date = () => new Date(),
): Promise<SecondFactorStep> {
  // A separate transaction, so that a wrong response uses up the challenge too.
  const purpose = { sessionId: session.id, purpose: 'passkey_use' } as const;
  const requested = await database.change((tx) =>
    consumeChallenge(tx, purpose, findAnsweredChallenge(response), now()),
  );
  const consume = async (tx: Transaction) => {
    const known = await listPasskeyRows(tx, session.personId);
    const passkey = known.find(({ credentialId }) => credentialId === findCredentialId(response));
    if (requested === null || passkey === undefined) return false;
    const counter = await getNewCounter(response, passkey, requested, party).catch(rejectedToNull);
    if (counter === null) return false;
    const factor = await tx.findOne(SecondFactor, { id: passkey.id }, writeLock);
    return factor?.useCounter(counter, now()) ?? false;
  };
  return completeStep(database, { session, visitor, step: 'passkey', consume }, now);
}

/**
 * Accepts a recovery code, which is then used up. `left`: how many the person still has.
 *
 * @throws IdentityError `wrong_code`, `too_many_attempts`, `session_expired`
 */
export async function redeemRecoveryCode(
  database: Database,
  session: Session,
  { code, visitor }: { code: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<SecondFactorStep & { left: number }> {
  const consume = (tx: Transaction) => consumeRecoveryCode(tx, session.personId, code, now());
  const completed = await completeStep(database, { session, visitor, step: 'recovery_code', consume }, now);
  return { ...completed, left: await countRecoveryCodes(database, session.personId) };
}

/** The common part of the three. `consume` uses the factor up and returns whether it is accepted. */
async function completeStep(
  database: Database,
  input: { session: Session; visitor: Visitor; step: Step; consume: (tx: Transaction) => Promise<boolean> },
  now: () => Date,
): Promise<SecondFactorStep> {
  const { session, visitor, step, consume } = input;
  const { personId } = session;
  const isStepUp = session.state === 'full';
  const known = visitor.browser ?? null;
  const browserHash = isStepUp ? null : await findKnownBrowser(database, personId, known, now());
  const from = { address: visitor.address, browserHash };
  const failure = isStepUp
    ? ownFailure(`step_up_${step}`, personId)
    : signInFailure('factor', factorSubject(personId), from);
  await countFailure(database, failure, now());
  const completed = await database.change(async (tx) => {
    if (!(await consume(tx))) {
      await recordPersonEntry(tx, { personId, action: 'sign_in.failure', visitor, detail: { step } });
      return null;
    }
    const renewed = await recordSecondFactor(tx, session.id, now());
    const action = isStepUp ? 'sign_in.step_up' : 'sign_in.complete';
    const isNewBrowser = !isStepUp && browserHash === null;
    const detail = { step, sessionId: session.id, ...(isNewBrowser && { isNewBrowser }) };
    await recordPersonEntry(tx, { personId, action, visitor, detail });
    if (isStepUp) return { ...renewed, browser: null, isNewToken: false };
    const kept = session.providerId === null ? null : await keepBrowser(tx, { personId, known }, now());
    const browser = kept ?? (await rememberBrowser(tx, { personId, known }, now()));
    return { ...renewed, browser, isNewToken: kept === null };
  });
  if (completed === null) throw wrong[step]();
  await clearFailure(database, failure);
  // The password was correct, too: its step has cleared the count of its network, not of its person. A sign-in at a
  // provider has proven no password.
  const password = signInFailure('password', passwordSubject(session.email), from);
  if (!isStepUp && session.providerId === null) await clearFailure(database, password, ['pair', 'subject']);
  return completed;
}

function rejectedToNull(error: unknown): null {
  if (error instanceof IdentityError) return null;
  throw error;
}
