import type { Permission } from '../contract/scopes.ts';
import type { SealingKeys } from '../seal/envelope.ts';

/**
 * Where a request of a person came from; shown to them in the list of their sessions and in the
 * activity log.
 */
export interface Visitor {
  /** The IP address, as the trusted proxies report it; null when unknown. */
  address: string | null;
  /** As the browser says; cut to 300 characters when stored. */
  userAgent: string;
  /**
   * The token by which it is a browser that its person has signed in with (known-browsers.ts); null
   * or left out: it has none.
   */
  browser?: string | null;
}

/**
 * Who the console is to a passkey: `id` is its host name, `origin` its scheme, host and port,
 * `name` what the browser shows.
 */
export interface RelyingParty {
  id: string;
  name: string;
  origin: string;
}

/**
 * What the second factor needs beside the database. `sealingKeys` seal the secrets of authenticator
 * apps.
 */
export interface FactorSettings {
  sealingKeys: SealingKeys;
  relyingParty: RelyingParty;
}

/** `password_passed` may do nothing but pass, with a second factor, to `full`. */
export type SessionState = 'password_passed' | 'full';

/** An organization that is open to the person of a session now. */
export interface SessionMembership {
  organizationId: string;
  organizationName: string;
  /** What the organization calls the person. */
  name: string;
  email: string;
  title: string | null;
  /** Keys of the roles they hold, by key. */
  roleKeys: string[];
  /** What these roles allow. */
  permissions: Permission[];
}

/**
 * A living session. `secondFactorAt` is null until a second factor was given; `memberships` are by
 * organization name.
 */
export interface Session {
  id: string;
  personId: string;
  /** The address the person signs in with. */
  email: string;
  state: SessionState;
  createdAt: Date;
  lastSeenAt: Date;
  /** When it ends however much it is used. */
  expiresAt: Date;
  secondFactorAt: Date | null;
  memberships: SessionMembership[];
  /**
   * Ids of the organizations whose active member the person is, and that have not confirmed their
   * sign-in.
   */
  unconfirmed: string[];
}

/** One of a person's sessions, as their list shows it. */
export interface SessionRow {
  id: string;
  state: SessionState;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
  address: string | null;
  userAgent: string;
  /** Whether it is the session that asks. */
  isThis: boolean;
}

export type FactorKind = 'totp' | 'passkey';

/** A second factor, as its person sees it. */
export interface FactorRow {
  id: string;
  kind: FactorKind;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

/**
 * What a one-time link is for: `enrol` sets the first password and second factor; `join` leads a
 * person who signs in already into one more organization, by signing in; `recover`, an operator's,
 * replaces password and factors of a person who lost them.
 */
export type EnrolmentKind = 'enrol' | 'join' | 'recover';

/** A link that is still good. `email` is what the person will sign in with. */
export interface EnrolmentDetails {
  personId: string;
  email: string;
  organizationId: string;
  organizationName: string;
  kind: EnrolmentKind;
  /** Whether the password of this enrolment has been chosen; then the second factor is next. */
  hasPassword: boolean;
  expiresAt: Date;
}
