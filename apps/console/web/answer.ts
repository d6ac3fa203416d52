import type { Readable } from 'node:stream';
import type { Permission } from '#domain/contract/scopes.ts';
import type { Child } from './html.ts';

/** A page of ours. `title` is its heading too. */
export interface Page {
  kind: 'page';
  title: string;
  body: Child;
  /** 200 unless it says otherwise; 422 for a form drawn again. */
  status: number;
  /**
   * Pages above this one, from the nearest to the organization: `[['Webhooks', '/o/…/webhooks']]`.
   */
  breadcrumbs: readonly (readonly [label: string, href: string])[];
  /** Whether the browser talks to a passkey here. */
  passkeys: boolean;
  session: SessionChange | null;
  /** As of a redirect. */
  enrolment: string | null | undefined;
  /** As of a redirect. */
  browser: KnownBrowser | null;
}

/** What becomes of the browser's session with this answer: a new token, or none any more. */
export type SessionChange = { token: string } | 'ended';

/**
 * A browser that its person has signed in with: its token, and the address that they sign in with.
 */
export interface KnownBrowser {
  token: string;
  email: string;
}

/** On to another path of ours, after a change. `told` is said on it. */
export interface Redirect {
  kind: 'redirect';
  to: string;
  flash: string | null;
  session: SessionChange | null;
  /** An enrolment link's token to remember, null to forget it, undefined to leave it. */
  enrolment: string | null | undefined;
  /** What to know this browser by from now on; null leaves it as it is. */
  browser: KnownBrowser | null;
}

/** A file, streamed. */
export interface Download {
  kind: 'download';
  fileName: string;
  type: string;
  /**
   * Begins it, when somebody takes it: not for a HEAD. What it throws before it returns is drawn as
   * a page.
   */
  open: () => Promise<Readable>;
}

export type Answer = Page | Redirect | Download;

export function page(
  parts: Pick<Page, 'title' | 'body'> &
    Partial<Pick<Page, 'status' | 'breadcrumbs' | 'passkeys' | 'session' | 'enrolment' | 'browser'>>,
): Page {
  return {
    kind: 'page',
    status: 200,
    breadcrumbs: [],
    passkeys: false,
    session: null,
    enrolment: undefined,
    browser: null,
    ...parts,
  };
}

export function redirect(
  to: string,
  parts: Partial<Pick<Redirect, 'flash' | 'session' | 'enrolment' | 'browser'>> = {},
): Redirect {
  return { kind: 'redirect', to, flash: null, session: null, enrolment: undefined, browser: null, ...parts };
}

export function download(parts: Omit<Download, 'kind'>): Download {
  return { kind: 'download', ...parts };
}

/**
 * There is nothing here, or nothing that this person may know of: thrown by a page, drawn as 404.
 */
export class NotFound extends Error {
  constructor() {
    super('There is nothing at this address.');
    this.name = 'NotFound';
  }
}

/**
 * The organization has not confirmed its active member's sign-in: thrown, drawn as 403 without the
 * organization's name.
 */
export class SignInUnconfirmed extends Error {
  constructor() {
    super('The organization has not confirmed this sign-in.');
    this.name = 'SignInUnconfirmed';
  }
}

/** The member's roles lack what a page wants: thrown, drawn as 403. */
export class PermissionNeeded extends Error {
  readonly permission: Permission;

  constructor(permission: Permission) {
    super(`This needs a role that holds ${permission}.`);
    this.name = 'PermissionNeeded';
    this.permission = permission;
  }
}

/**
 * A form that another site may have sent, or that holds what no form of ours does: thrown, drawn
 * with its status. Nothing was done.
 */
export class FormRefused extends Error {
  readonly status: 403 | 413 | 415 | 422;

  constructor(status: FormRefused['status'], message: string) {
    super(message);
    this.name = 'FormRefused';
    this.status = status;
  }
}
