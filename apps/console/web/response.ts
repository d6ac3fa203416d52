import type { Readable } from 'node:stream';
import type { Permission } from '#domain/contract/scopes.ts';
import type { Child, Html } from '#runtime/pages/html.ts';
import type { KnownBrowser } from './browser-cookie.ts';

/** Cookies that change with a page or a redirect; what is absent or null stays as it is. */
interface CookieChanges {
  /** The session's new token, or its end. */
  session?: { token: string } | 'ended' | null;
  /** The token of an enrolment link to remember; null removes it. */
  enrolment?: string | null | undefined;
  /** The token of a sign-in that this browser begins at a provider; null removes it. */
  providerSignIn?: string | null | undefined;
  /** The known browser that this one is from now on, and the address its person signs in with. */
  browser?: KnownBrowser | null;
}

export interface Page extends CookieChanges {
  kind: 'page';
  /** Also its heading. */
  title: string;
  body: Child;
  /** 200 by default; 422 for a form that is rendered again. */
  status: number;
  /** Pages above this one, the nearest first: `[['Webhooks', '/o/…/webhooks']]`. */
  breadcrumbs: readonly (readonly [label: string, href: string])[];
  /** The status of what the page shows, beside the heading. */
  badge?: Html | null;
  /** Links and buttons beside the heading. */
  actions?: Child;
  /** The address of another site that the browser opens next, by itself. */
  leadsTo?: string | undefined;
  /** Whether the page needs the passkey script. */
  passkeys: boolean;
}

/** What the page after a redirect shows once: a success, or a warning. */
export interface Flash {
  kind: 'good' | 'warning';
  text: string;
}

/** A redirect to another path of the console, after a change. */
interface Redirect extends CookieChanges {
  kind: 'redirect';
  to: string;
  flash: Flash | null;
}

/** A file, streamed. */
export interface Download {
  kind: 'download';
  fileName: string;
  type: string;
  /** Starts the file. Not called for HEAD. An error before it returns becomes a page. */
  open: () => Promise<Readable>;
}

/** The response to a form. No file: after one, the page and its form would stay. */
export type FormResponse = Page | Redirect;
export type RouteResponse = FormResponse | Download;

export const page = (parts: Pick<Page, 'title' | 'body'> & Partial<Omit<Page, 'kind'>>): Page => ({
  kind: 'page',
  status: 200,
  breadcrumbs: [],
  passkeys: false,
  ...parts,
});

/** Returns a redirect. A `flash` that is only a sentence is a success. */
export const redirect = (
  to: string,
  { flash = null, ...cookies }: CookieChanges & { flash?: Flash | string | null } = {},
): Redirect => ({
  kind: 'redirect',
  to,
  flash: typeof flash === 'string' ? { kind: 'good', text: flash } : flash,
  ...cookies,
});

export const download = (parts: Omit<Download, 'kind'>): Download => ({ kind: 'download', ...parts });

/** Thrown for what does not exist, or must not be known to this person. Becomes a 404 page. */
export class NotFoundError extends Error {
  override name = 'NotFoundError';

  constructor() {
    super('There is nothing at this address.');
  }
}

/**
 * Thrown when an organization has not confirmed the sign-in of its active member. Becomes a 403
 * page without the organization's name.
 */
export class UnconfirmedSignInError extends Error {
  override name = 'UnconfirmedSignInError';

  constructor() {
    super('The organization has not confirmed this sign-in.');
  }
}

/** Thrown when the organization requires a passkey, and its member has none. Becomes a 403 page. */
export class PasskeyNeededError extends Error {
  override name = 'PasskeyNeededError';

  constructor() {
    super('The organization requires a passkey.');
  }
}

/**
 * Thrown when an organization requires a session of its provider, which the member's is not. Becomes a 403 page without
 * the organization's name.
 */
export class ProviderSessionNeededError extends Error {
  override name = 'ProviderSessionNeededError';

  constructor() {
    super('The organization requires a sign-in with its provider.');
  }
}

/** Thrown when the member's roles lack the permission that a page requires. Becomes a 403 page. */
export class MissingPermissionError extends Error {
  override name = 'MissingPermissionError';
  readonly permission: Permission;

  constructor(permission: Permission) {
    super(`This requires a role with the permission ${permission}.`);
    this.permission = permission;
  }
}

/**
 * Thrown for a form that may come from another site, or that no page of the console can have sent.
 * Becomes a page with its status. Nothing was changed.
 */
export class FormError extends Error {
  override name = 'FormError';
  readonly status: 403 | 413 | 415 | 422;
  /** What to do; null: submit the form in the console. */
  readonly next: Html | null;

  constructor(status: FormError['status'], message: string, next: Html | null = null) {
    super(message);
    this.status = status;
    this.next = next;
  }
}

/** Thrown for a request that is not valid HTTP, or whose path has no such method. */
export class RequestError extends Error {
  override name = 'RequestError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
