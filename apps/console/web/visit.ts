import type { BlockList } from 'node:net';
import type { Region } from '#domain/contract/regions.ts';
import type { Permission } from '#domain/contract/scopes.ts';
import type { Database } from '#domain/db/database.ts';
import type { FactorSettings, Session, SessionMembership, Visitor } from '#domain/identity/types.ts';
import type { KeySecrets } from '#domain/keys/key.ts';
import type { Downloads } from './downloads.ts';
import type { OpenIdProviders } from './openid.ts';
import type { Flash } from './response.ts';
import type { Share, Shares } from './shares.ts';
import type { Workflows } from './temporal.ts';

/** What pages use; `app.ts` opens it. Domain functions take these as plain parameters. */
export interface ConsoleDependencies {
  region: Region;
  database: Database;
  /** Peppers and tag secrets of API keys. */
  keys: KeySecrets;
  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: BlockList;
  /** Addresses that webhooks may reach although they are not public. */
  webhookAllow: BlockList;
  /** What second factors need; its sealing keys seal signing secrets too. */
  factors: FactorSettings;
  /** Signs people in at the providers of their organizations. */
  openId: OpenIdProviders;
  /** Sends test events through a worker. */
  workflows: Workflows;
  /** Base URL of the read API, for the ready `curl` line. */
  apiUrl: string;
  /** Whether invitations are mailed. Otherwise pages show their links. */
  sendsMail: boolean;
  /** The console's origin, for links. */
  origin: string;
  now: () => Date;
  /** Bounds the pages and forms in progress. */
  shares: Shares;
  /** Bounds the downloads in progress. */
  downloads: Downloads;
  /** Whether the forms of a path may ask for a second factor. */
  mayStepUp: (path: string) => boolean;
}

/** Returns the address of the API reference. */
export const referenceUrl = ({ apiUrl }: Pick<ConsoleDependencies, 'apiUrl'>): string =>
  `${apiUrl.replace(/\/$/, '')}/docs`;

/** The sender of a request, as far as the request itself shows. */
export interface Caller {
  visitor: Visitor;
  /** The address that the known browser's cookie was issued for; null without one. */
  browserEmail: string | null;
}

/** One request, as pages see it. Koa's context stays in `web/`. */
export interface Visit extends Caller {
  console: ConsoleDependencies;
  route: string;
  requestId: string;
  /** Path and query as sent, beginning with `/`. */
  target: string;
  path: string;
  /** Parts of the path that the route names: ids are UUIDs in lower case. */
  params: Readonly<Record<string, string>>;
  session: Session | null;
  sessionToken: string | null;
  /** The token of the enrolment link that this browser opened. */
  enrolmentToken: string | null;
  /** The token of the sign-in that this browser has begun at a provider. */
  providerSignIn: string | null;
  /** The message of the page before. */
  flash: Flash | null;
  /** The token for every form of this session. */
  formToken: string;
  /** The share of the database that the request has reserved; null without a session. */
  share: Share | null;
}

/**
 * A visit of a person who has signed in with both factors, or with the password alone where the
 * route allows it.
 */
export interface PersonVisit extends Visit {
  session: Session;
  sessionToken: string;
}

/** A visit of an active member within their organization. */
export interface MemberVisit extends PersonVisit {
  organization: SessionMembership;
  organizationId: string;
  /** The member and their address, as domain functions take the caller. */
  by: { personId: string; address: string | null };
  /** The organization and the caller, as domain functions take them. */
  request: { organizationId: string; by: MemberVisit['by'] };
  may: (permission: Permission) => boolean;
  /** A path within the organization: `at('/keys')` is `/o/<id>/keys`. */
  at: (rest: string) => string;
}
