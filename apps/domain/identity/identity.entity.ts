import { defineEntity, p } from '@mikro-orm/core';

const SignInSchema = defineEntity({
  name: 'SignIn',
  properties: {
    personId: p.text().primary(),
    email: p.text(),
    passwordHash: p.text().nullable(),
    passwordChangedAt: p.datetime(),
    createdAt: p.datetime(),
  },
});

/**
 * How a person signs in: the address, and the hash of the password (PHC string form, argon2id), which is null for one
 * who signs in with a provider only.
 */
export class SignIn extends SignInSchema.class {
  /** Stores the same password with the current hash parameters. */
  rehash(passwordHash: string): void {
    this.passwordHash = passwordHash;
  }

  /** Replaces the password by one with this hash. */
  changePassword(passwordHash: string, at: Date): void {
    this.passwordHash = passwordHash;
    this.passwordChangedAt = at;
  }
}
SignInSchema.setClass(SignIn);

const SecondFactorSchema = defineEntity({
  name: 'SecondFactor',
  properties: {
    id: p.uuid().primary(),
    personId: p.text(),
    kind: p.text().$type<'totp' | 'passkey'>(),
    name: p.text(),
    createdAt: p.datetime(),
    lastUsedAt: p.datetime().nullable(),
    totpSealed: p.blob().$type<Buffer>().nullable(),
    totpLastStep: p.bigint('number').nullable(),
    credentialId: p.text().nullable(),
    publicKey: p.blob().$type<Buffer>().nullable(),
    counter: p.bigint('number').nullable(),
    transports: p.array().nullable(),
  },
});

/** An authenticator app (`totp…`) or a passkey (the others). Load it with `writeLock` to use it. */
export class SecondFactor extends SecondFactorSchema.class {
  /** Uses up the code of a time step. Returns false when it or a later one was used before. */
  useTotpStep(step: number, at: Date): boolean {
    if (this.kind !== 'totp' || step <= (this.totpLastStep ?? 0)) return false;
    this.totpLastStep = step;
    this.lastUsedAt = at;
    return true;
  }

  /**
   * Accepts the counter of a passkey's response. Returns false when it decreased, as that of a
   * copied passkey does. A passkey that does not count sends 0 each time.
   */
  useCounter(counter: number, at: Date): boolean {
    const last = this.counter ?? 0;
    if (this.kind !== 'passkey' || (counter <= last && !(counter === 0 && last === 0))) return false;
    this.counter = counter;
    this.lastUsedAt = at;
    return true;
  }
}
SecondFactorSchema.setClass(SecondFactor);

/** A recovery code, by its SHA-256. It works once. */
export const RecoveryCode = defineEntity({
  name: 'RecoveryCode',
  properties: {
    personId: p.text().primary(),
    codeHash: p.blob().$type<Buffer>().primary(),
    createdAt: p.datetime(),
    usedAt: p.datetime().nullable(),
  },
});

const ConsoleSessionSchema = defineEntity({
  name: 'ConsoleSession',
  properties: {
    id: p.uuid().primary(),
    tokenHash: p.blob().$type<Buffer>(),
    personId: p.text(),
    providerId: p.uuid().nullable(),
    state: p.text().$type<'password_passed' | 'full'>(),
    createdAt: p.datetime(),
    lastSeenAt: p.datetime(),
    expiresAt: p.datetime(),
    secondFactorAt: p.datetime().nullable(),
    address: p.text().columnType('inet').nullable(),
    userAgent: p.text(),
  },
});

/** A session of the console, by the SHA-256 of its token. */
export class ConsoleSession extends ConsoleSessionSchema.class {
  /**
   * Completes the session with a second factor, or renews its step-up, and gives it a new token.
   * `expiresAt` applies when it becomes full: a step-up extends no session.
   */
  recordSecondFactor(tokenHash: Buffer, at: Date, expiresAt: Date): void {
    if (this.state !== 'full') this.expiresAt = expiresAt;
    this.state = 'full';
    this.tokenHash = tokenHash;
    this.secondFactorAt = at;
    this.lastSeenAt = at;
  }
}
ConsoleSessionSchema.setClass(ConsoleSession);

/** A challenge that a session has to answer, or the secret of an app that it sets up. */
export const Challenge = defineEntity({
  name: 'Challenge',
  properties: {
    sessionId: p.uuid().primary(),
    purpose: p.text().$type<'totp_setup' | 'passkey_setup' | 'passkey_use'>().primary(),
    expiresAt: p.datetime(),
    challenge: p.text().strictNullable(),
    totpSealed: p.blob().$type<Buffer>().strictNullable(),
  },
});

/** A browser that its person has signed in with, by the SHA-256 of its token. */
export const KnownBrowser = defineEntity({
  name: 'KnownBrowser',
  properties: {
    tokenHash: p.blob().$type<Buffer>().primary(),
    personId: p.text(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
  },
});

/** A one-time link, by the SHA-256 of its token, and what its person has entered so far. */
export const Enrolment = defineEntity({
  name: 'Enrolment',
  properties: {
    organizationId: p.uuid().primary(),
    personId: p.text().primary(),
    tokenHash: p.blob().$type<Buffer>(),
    kind: p.text().$type<'invite' | 'recover'>(),
    email: p.text(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
    invitedBy: p.text().strictNullable(),
    passwordHash: p.text().strictNullable(),
    providerId: p.uuid().strictNullable(),
    subject: p.text().strictNullable(),
    totpSealed: p.blob().$type<Buffer>().strictNullable(),
    challenge: p.text().strictNullable(),
  },
});

const SsoProviderSchema = defineEntity({
  name: 'SsoProvider',
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    issuer: p.text(),
    clientId: p.text(),
    secretSealed: p.blob().$type<Buffer>(),
    isRequired: p.boolean(),
    createdAt: p.datetime(),
  },
});

/** The OpenID provider of an organization. Another issuer or client is another provider. */
export class SsoProvider extends SsoProviderSchema.class {}
SsoProviderSchema.setClass(SsoProvider);
