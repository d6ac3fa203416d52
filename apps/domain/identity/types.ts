import type { Permission } from '../contract/scopes.ts';
import type { SealingKeys } from '../encryption/envelope.ts';

/**
 * Where a person's request came from; shown in the list of their sessions and in the audit log.
 */
export interface Visitor {
  /** The IP address, as the trusted proxies report it; null when unknown. */
  address: string | null;
  /** As the browser sent it; cut to 300 characters when stored. */
  userAgent: string;
  /** The token of a known browser (known-browsers.ts); null or absent: it has none. */
  browser?: string | null;
}

/** The console as passkeys see it. `id`: its host name. `name`: what the browser shows. */
export interface RelyingParty {
  id: string;
  name: string;
  origin: string;
}

/** What second factors need beside the database. `sealingKeys` seal authenticator secrets. */
export interface FactorSettings {
  sealingKeys: SealingKeys;
  relyingParty: RelyingParty;
}

/** `password_passed`, also after a sign-in at a provider, may only become `full`, with a second factor. */
type SessionState = 'password_passed' | 'full';

/** An organization that is open to the person of a session. */
export interface SessionMembership {
  organizationId: string;
  /** The name that its owners chose, else the platform's. */
  organizationName: string;
  /** The platform's, which what is proven to others has. */
  registeredName: string;
  /** The zone of its times; null: the viewer's. */
  timeZone: string | null;
  /** Whether it requires a passkey, and the person has none. */
  needsPasskey: boolean;
  /** The person's name in the organization. */
  name: string;
  email: string;
  title: string | null;
  /** Keys of their roles, in order. */
  roleKeys: string[];
  permissions: Permission[];
}

/** An open session. `secondFactorAt` null: none yet. `memberships` are by organization name. */
export interface Session {
  id: string;
  personId: string;
  /** The address with which the person signs in. */
  email: string;
  state: SessionState;
  createdAt: Date;
  lastSeenAt: Date;
  /** When it ends, even in use. */
  expiresAt: Date;
  secondFactorAt: Date | null;
  /** The provider at which the session began; null: with a password. */
  providerId: string | null;
  /**
   * Whether it began at a provider while another organization has confirmed the sign-in too. Then it changes nothing of
   * how its person signs in elsewhere.
   */
  isConfined: boolean;
  memberships: SessionMembership[];
  /** Organizations whose active member the person is and which have not confirmed the sign-in. */
  unconfirmed: string[];
  /** Organizations that have confirmed it and require a session of their provider, which this one is not. */
  closed: string[];
}

/** One of a person's sessions, as their list shows it. */
export interface SessionRow extends Pick<Session, 'id' | 'state' | 'createdAt' | 'lastSeenAt' | 'expiresAt'> {
  address: string | null;
  userAgent: string;
  /** Whether it is the caller's own session. */
  isThis: boolean;
}

/** A second factor, as its person sees it. */
export interface FactorRow {
  id: string;
  kind: 'totp' | 'passkey';
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

/**
 * The purpose of a one-time link: with `invite` a person joins the organization, by signing in or
 * by setting their first password and second factor; `recover`, an operator's, replaces password
 * and factors of a person who lost them.
 */
export type EnrolmentKind = 'invite' | 'recover';
