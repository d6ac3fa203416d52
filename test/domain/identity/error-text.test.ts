/** Database errors never quote credentials, whichever properties of the error a program prints. */
import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import {
  Challenge,
  ConsoleSession,
  Enrolment,
  KnownBrowser,
  RecoveryCode,
  SecondFactor,
  SignIn,
} from '#domain/identity/identity.entity.ts';
import { createLog, describeError } from '#runtime/log.ts';
import { setupPeople } from '#test/people.ts';

/** Returns all properties of an error that a program could print, and its log line. */
function listTexts(error: unknown): string {
  if (!(error instanceof Error)) throw new Error('the statement was accepted');
  const lines: string[] = [];
  const destination = new Writable({ write: (line, _, done) => done(void lines.push(String(line))) });
  createLog({ level: 'info', name: 'test', region: 'us', destination }).error(
    { error: describeError(error) },
    'failed',
  );
  const own = Object.getOwnPropertyNames(error).map((name) => String(error[name as keyof Error]));
  return [String(error), ...own, JSON.stringify(error), ...lines].join('\n');
}

it('a broken constraint quotes no password hash, sealed secret, recovery code, token, address or name', async () => {
  const t = await setupPeople();
  const [person, other] = [await t.enrol(), await t.enrol()];
  const { personId } = person;
  await createEnrolment(t.owner, { organizationId: person.orgId, email: 'quartz@example.org', by: 'orgctl' }, t.now);
  const { db } = t;
  const signIn = await db.findOneOrFail(SignIn, { personId });
  const factor = await db.findOneOrFail(SecondFactor, { personId });
  const session = await db.findOneOrFail(ConsoleSession, { personId });
  const [code] = await db.find(RecoveryCode, { personId });
  const browser = await db.findOneOrFail(KnownBrowser, { personId });
  if (!code || !factor.totpSealed) throw new Error('the person has no recovery code or no app');
  const { totpSealed } = factor;
  const copy = { ...structuredClone({ ...factor }), id: randomUUID() };
  const at = t.now();
  const { passwordHash } = signIn;
  if (!passwordHash) throw new Error('the person has no password');
  const notArgon = passwordHash.replace('argon2id', 'bcrypt');
  const challenge = { sessionId: session.id, expiresAt: at };
  const rejected: [constraint: string, change: () => Promise<unknown>][] = [
    [
      'sign_in_password_is_argon2id',
      () => db.change((tx) => tx.nativeUpdate(SignIn, { personId }, { passwordHash: notArgon })),
    ],
    ['sign_in_email_unique', () => db.change((tx) => tx.nativeUpdate(SignIn, { personId }, { email: other.email }))],
    [
      'sign_in_pkey',
      () => db.change((tx) => tx.insert(SignIn, { ...structuredClone({ ...signIn }), email: 'quartz@example.net' })),
    ],
    [
      'enrolment_password_is_argon2id',
      () => db.change((tx) => tx.nativeUpdate(Enrolment, {}, { passwordHash: notArgon })),
    ],
    [
      'second_factor_pkey',
      () => db.change((tx) => tx.insert(SecondFactor, { ...copy, id: factor.id, name: 'Quartz' })),
    ],
    [
      'second_factor_totp_whole',
      () => db.change((tx) => tx.insert(SecondFactor, { ...copy, totpLastStep: null, name: 'Quartz' })),
    ],
    [
      'second_factor_name_length',
      () => db.change((tx) => tx.insert(SecondFactor, { ...copy, name: 'Quartz'.repeat(20) })),
    ],
    ['recovery_code_pkey', () => db.change((tx) => tx.insert(RecoveryCode, { ...structuredClone({ ...code }) }))],
    [
      'console_session_token_unique',
      () =>
        db.change((tx) =>
          tx.insert(ConsoleSession, { ...structuredClone({ ...session }), id: randomUUID(), userAgent: 'Quartz' }),
        ),
    ],
    ['known_browser_pkey', () => db.change((tx) => tx.insert(KnownBrowser, { ...structuredClone({ ...browser }) }))],
    [
      'challenge_whole',
      () =>
        db.change((tx) =>
          tx.insert(Challenge, { ...challenge, purpose: 'totp_setup', totpSealed, challenge: 'quartz' }),
        ),
    ],
  ];
  const secrets = [totpSealed, code.codeHash, session.tokenHash, browser.tokenHash].flatMap((value) => [
    value.toString('hex'),
    value.toString('base64'),
    value.subarray(4, 12).toString('hex'),
  ]);
  const hashPart = passwordHash.split('$').at(-1) ?? '';
  expect(hashPart.length).toBeGreaterThan(20);
  for (const [constraint, change] of rejected) {
    const text = await change().then(() => '', listTexts);
    expect(text).toContain(constraint);
    expect(text, constraint).not.toMatch(/quartz/i);
    for (const secret of [...secrets, hashPart, notArgon, person.email, other.email, other.email.toUpperCase()])
      expect(text, constraint).not.toContain(secret);
  }
});
