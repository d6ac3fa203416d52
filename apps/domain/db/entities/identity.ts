import { defineEntity, p } from '@mikro-orm/core';

/**
 * How a person signs in: the address, and the hash of the password (PHC string form, argon2id).
 * Tables of migration 0011.
 */
export const SignIn = defineEntity({
  name: 'SignIn',
  tableName: 'sign_in',
  properties: {
    personId: p.text().primary(),
    email: p.text(),
    passwordHash: p.text(),
    passwordChangedAt: p.datetime(),
    createdAt: p.datetime(),
  },
});

/**
 * An authenticator app (`totp…`) or a passkey (the other fields); what belongs to the other kind is
 * null.
 */
export const SecondFactor = defineEntity({
  name: 'SecondFactor',
  tableName: 'second_factor',
  properties: {
    id: p.uuid().primary(),
    personId: p.text(),
    kind: p.text().$type<'totp' | 'passkey'>(),
    name: p.text(),
    createdAt: p.datetime(),
    lastUsedAt: p.datetime().strictNullable(),
    totpSealed: p.blob().strictNullable(),
    totpLastStep: p.bigint('number').strictNullable(),
    credentialId: p.text().strictNullable(),
    publicKey: p.blob().strictNullable(),
    counter: p.bigint('number').strictNullable(),
    transports: p.array().strictNullable(),
  },
});

/** A recovery code, by its SHA-256. */
export const RecoveryCode = defineEntity({
  name: 'RecoveryCode',
  tableName: 'recovery_code',
  properties: {
    personId: p.text().primary(),
    codeHash: p.blob().primary(),
    createdAt: p.datetime(),
    usedAt: p.datetime().strictNullable(),
  },
});

/** A session of the console, by the SHA-256 of its token. */
export const ConsoleSession = defineEntity({
  name: 'ConsoleSession',
  tableName: 'console_session',
  properties: {
    id: p.uuid().primary(),
    tokenHash: p.blob(),
    personId: p.text(),
    state: p.text().$type<'password_passed' | 'full'>(),
    createdAt: p.datetime(),
    lastSeenAt: p.datetime(),
    expiresAt: p.datetime(),
    secondFactorAt: p.datetime().strictNullable(),
    address: p.text().columnType('inet').strictNullable(),
    userAgent: p.text(),
  },
});

/** What a session waits for an answer to. */
export const FactorChallenge = defineEntity({
  name: 'FactorChallenge',
  tableName: 'factor_challenge',
  properties: {
    sessionId: p.uuid().primary(),
    purpose: p.text().$type<'totp_setup' | 'passkey_setup' | 'passkey_use'>().primary(),
    expiresAt: p.datetime(),
    challenge: p.text().strictNullable(),
    totpSealed: p.blob().strictNullable(),
  },
});

/** What a passkey was asked, one of several at a time. */
export const PasskeyChallenge = defineEntity({
  name: 'PasskeyChallenge',
  tableName: 'passkey_challenge',
  properties: {
    sessionId: p.uuid().primary(),
    purpose: p.text().$type<'passkey_setup' | 'passkey_use'>().primary(),
    challenge: p.text().primary(),
    expiresAt: p.datetime(),
    place: p.bigint('number'),
  },
});

/** A browser that its person has signed in with, by the SHA-256 of its token. */
export const KnownBrowser = defineEntity({
  name: 'KnownBrowser',
  tableName: 'known_browser',
  properties: {
    tokenHash: p.blob().primary(),
    personId: p.text(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
  },
});

/** A one-time link, by the SHA-256 of its token, and what its person has chosen so far. */
export const Enrolment = defineEntity({
  name: 'Enrolment',
  tableName: 'enrolment',
  properties: {
    organizationId: p.uuid().primary(),
    personId: p.text().primary(),
    tokenHash: p.blob(),
    kind: p.text().$type<'enrol' | 'join' | 'recover'>(),
    email: p.text(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
    invitedBy: p.text().strictNullable(),
    passwordHash: p.text().strictNullable(),
    totpSealed: p.blob().strictNullable(),
    challenge: p.text().strictNullable(),
  },
});

/**
 * An organization that has confirmed a person's sign-in, by its own link or through an operator.
 */
export const SignInConfirmation = defineEntity({
  name: 'SignInConfirmation',
  tableName: 'sign_in_confirmation',
  properties: {
    personId: p.text().primary(),
    organizationId: p.uuid().primary(),
    confirmedAt: p.datetime(),
    confirmedBy: p.text().$type<'link' | 'operator'>(),
  },
});

/** An attempt that was admitted and has not succeeded. */
export const SignInAttempt = defineEntity({
  name: 'SignInAttempt',
  tableName: 'sign_in_attempt',
  properties: {
    id: p.uuid().primary(),
    subject: p.blob(),
    network: p.text().columnType('cidr').strictNullable(),
    at: p.datetime(),
  },
});

/** A form of the console that was sent and may not be sent again. */
export const FormUse = defineEntity({
  name: 'FormUse',
  tableName: 'form_use',
  properties: { sessionId: p.uuid().primary(), formId: p.uuid().primary() },
});
