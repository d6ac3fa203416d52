import type { BlockList } from 'node:net';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import type { Permission } from '#domain/contract/scopes.ts';
import type { SignInLimiter } from '#domain/identity/sign-in-limiter.ts';
import type { FactorSettings, Session, SessionMembership, Visitor } from '#domain/identity/types.ts';
import type { KeySecrets } from '#domain/keys/fingerprint.ts';
import type { Workflows } from '../workflows.ts';
import type { createDownloads } from './send-file.ts';

/** What a page may use; `app.ts` opens it all. Domain functions take these as plain parameters. */
export interface ConsoleParts {
  region: Region;
  em: EntityManager;
  pool: Pool;
  /** Peppers and tag secrets of API keys. */
  keys: KeySecrets;
  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: BlockList;
  /** Addresses that webhooks may reach although they are not public. */
  webhookAllow: BlockList;
  /** What second factors need; its sealing keys seal signing secrets too. */
  factors: FactorSettings;
  /** Bounds what sign-ins cost this process. */
  signInLimiter: SignInLimiter;
  /** Tells workflows that run. */
  workflows: Workflows;
  /** Base URL of the read API, for the ready `curl` line. */
  apiUrl: string;
  /** Our own origin, for links that people are sent. */
  origin: string;
  now: () => Date;
  /** Who may download at a time. */
  downloads: ReturnType<typeof createDownloads>;
}

/** Who sends a request, as far as the request itself tells. */
export interface Caller {
  visitor: Visitor;
  /** The cookie of a known browser, token and tag. */
  browserCookie: string | null;
}

/** One request, as a page sees it. Koa's context stays in `web/`. */
export interface Visit extends Caller {
  console: ConsoleParts;
  /** The name of the route. */
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
  /** A sentence that the page before left. */
  flash: string | null;
  /** The token that every form of this browser's session carries. */
  formToken: string;
}

/**
 * A visit of a person who has signed in with both factors (or, where the route says so, with the
 * password alone).
 */
export interface PersonVisit extends Visit {
  session: Session;
  sessionToken: string;
}

/** A visit of an active member within their organization. */
export interface MemberVisit extends PersonVisit {
  organization: SessionMembership;
  /** The member as the domain's functions take who asks, and from where. */
  by: { personId: string; address: string | null };
  may: (permission: Permission) => boolean;
  /** A path within the organization: `at('/keys')` is `/o/<id>/keys`. */
  at: (rest: string) => string;
}
