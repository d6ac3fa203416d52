import type { Database, Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { consumeChallenge, consumeTotpSetup, findTotpSetup, setupExpired, storeChallenge } from './challenges.ts';
import { IdentityError } from './errors.ts';
import { insertFactor, listPasskeyRows, type NewFactor, verifyNewPasskey, verifyNewTotp } from './factor-rows.ts';
import { SecondFactor, SignIn } from './identity.entity.ts';
import { deleteKnownBrowsers } from './known-browsers.ts';
import { findAnsweredChallenge, passkeySetupOptions } from './passkey.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { countRecoveryCodes, replaceRecoveryCodes } from './recovery-codes.ts';
import { assertFull, assertNotConfined, assertSteppedUp, endSessions } from './sessions.ts';
import { generateTotpSecret, sealTotp, totpUri } from './totp.ts';
import type { FactorRow, FactorSettings, RelyingParty, Session, Visitor } from './types.ts';

/**
 * A person's second factors. Each change requires a fresh one (ASVS 7.5.1) and a session that is not confined, and is
 * recorded.
 */

/** @throws IdentityError `step_up_needed`, `password_session_needed` */
function assertMayChange(session: Session, now: Date): void {
  assertSteppedUp(session, now);
  assertNotConfined(session);
}

/** Lists the person's factors, oldest first, with the number of unused recovery codes. */
export async function listFactors(
  db: Queryable,
  session: Session,
): Promise<{ factors: FactorRow[]; recoveryCodesLeft: number }> {
  assertFull(session);
  const { personId } = session;
  const rows = await db.find(SecondFactor, { personId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  const factors = rows.map(({ id, kind, name, createdAt, lastUsedAt = null }) => {
    return { id, kind, name, createdAt, lastUsedAt };
  });
  return { factors, recoveryCodesLeft: await countRecoveryCodes(db, personId) };
}

/**
 * Starts the setup of an authenticator app: returns its secret, and the text of the QR code.
 *
 * @throws IdentityError `step_up_needed`, `password_session_needed`
 */
export async function startTotp(
  database: Database,
  session: Session,
  { sealingKeys, relyingParty }: FactorSettings,
  now: () => Date = () => new Date(),
): Promise<{ secret: string; uri: string }> {
  assertMayChange(session, now());
  const secret = generateTotpSecret();
  const totpSealed = sealTotp(secret, session.id, sealingKeys);
  await storeChallenge(database, { sessionId: session.id, purpose: 'totp_setup', totpSealed }, now());
  return { secret, uri: totpUri(secret, session.email, relyingParty.name) };
}

/**
 * Adds the app whose setup was started, after a correct code. Returns its id. No code is counted:
 * the session has seen the secret that the codes are made of.
 *
 * @throws IdentityError `wrong_code`, `setup_expired`, `step_up_needed`, `password_session_needed`
 */
export async function addTotp(
  database: Database,
  session: Session,
  { visitor, ...given }: { code: string; name: string; visitor: Visitor },
  { sealingKeys }: Pick<FactorSettings, 'sealingKeys'>,
  now: () => Date = () => new Date(),
): Promise<{ id: string }> {
  assertMayChange(session, now());
  const sealed = await findTotpSetup(database, session.id, now());
  if (sealed === null) throw setupExpired();
  const factor = verifyNewTotp(given, { sealed, row: session.id }, sealingKeys, now());
  return database.change(async (tx) => {
    if (!(await consumeTotpSetup(tx, session.id, sealed))) throw setupExpired();
    return recordFactor(tx, session, { factor, visitor }, now());
  });
}

/** Inserts a factor that has answered, and records it. */
async function recordFactor(
  tx: Transaction,
  { personId }: Session,
  { factor, visitor }: { factor: NewFactor; visitor: Visitor },
  now: Date,
): Promise<{ id: string }> {
  const { id, kind } = factor;
  await insertFactor(tx, personId, factor, now);
  await recordPersonEntry(tx, { personId, action: 'factor.add', visitor, detail: { factorId: id, kind } });
  return { id };
}

/**
 * Starts the setup of a passkey: returns options for `navigator.credentials.create`.
 *
 * @throws IdentityError `step_up_needed`, `password_session_needed`
 */
export async function startPasskey(
  database: Database,
  session: Session,
  party: RelyingParty,
  now: () => Date = () => new Date(),
) {
  assertMayChange(session, now());
  const known = await listPasskeyRows(database, session.personId);
  const person = { ...session, name: session.memberships[0]?.name ?? session.email };
  const ids = known.map(({ credentialId }) => credentialId);
  const options = await passkeySetupOptions(person, ids, party);
  const { challenge } = options;
  await storeChallenge(database, { sessionId: session.id, purpose: 'passkey_setup', challenge }, now());
  return options;
}

/**
 * Adds the passkey that answers. Returns its id.
 *
 * @throws IdentityError `wrong_passkey`, `setup_expired`, `factor_known`, `step_up_needed`, `password_session_needed`
 */
export async function addPasskey(
  database: Database,
  session: Session,
  { visitor, ...given }: { response: unknown; name: string; visitor: Visitor },
  party: RelyingParty,
  now: () => Date = () => new Date(),
): Promise<{ id: string }> {
  assertMayChange(session, now());
  const requested = { sessionId: session.id, purpose: 'passkey_setup' } as const;
  const challenge = await database.change((tx) =>
    consumeChallenge(tx, requested, findAnsweredChallenge(given.response), now()),
  );
  if (challenge === null) throw setupExpired();
  const factor = await verifyNewPasskey(given, challenge, party);
  return database.change((tx) => recordFactor(tx, session, { factor, visitor }, now()));
}

/**
 * Removes a factor. The person's other sessions end, because a thief of the factor may use one. The
 * last factor stays, also when several are removed at once.
 *
 * @throws IdentityError `no_such_factor`, `last_factor`, `step_up_needed`, `password_session_needed`
 */
export async function removeFactor(
  database: Database,
  session: Session,
  { factorId, visitor }: { factorId: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<void> {
  assertMayChange(session, now());
  await database.change(async (tx) => {
    const { personId } = session;
    // The database itself keeps the last one; with the lock, concurrent calls get a sentence.
    await tx.findOne(SignIn, { personId }, writeLock);
    const factors = await tx.find(SecondFactor, { personId });
    const found = factors.find(({ id }) => id === factorId.toLowerCase());
    if (found === undefined) throw new IdentityError('no_such_factor', 'This second factor does not exist.');
    if (factors.length === 1)
      throw new IdentityError('last_factor', 'This is your only second factor. Add another second factor first.');
    await tx.remove(found).flush();
    await endSessions(tx, personId, session.id);
    await deleteKnownBrowsers(tx, personId, visitor.browser ?? null);
    const detail = { factorId: found.id, kind: found.kind };
    await recordPersonEntry(tx, { personId, action: 'factor.remove', visitor, detail });
  });
}

/**
 * Creates ten recovery codes that replace all earlier ones; they are shown once.
 *
 * @throws IdentityError `step_up_needed`, `password_session_needed`
 */
export async function renewRecoveryCodes(
  database: Database,
  session: Session,
  visitor: Visitor,
  now: () => Date = () => new Date(),
): Promise<string[]> {
  assertMayChange(session, now());
  return database.change(async (tx) => {
    const { personId } = session;
    const codes = await replaceRecoveryCodes(tx, personId, now());
    await recordPersonEntry(tx, { personId, action: 'recovery_codes.renew', visitor });
    return codes;
  });
}
