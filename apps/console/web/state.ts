import type { RouterContext, RouterMiddleware } from '@koa/router';
import type { ErrorCode } from '#domain/contract/errors.ts';
import type { Reservation } from '#runtime/flow/budget.ts';
import type { FormValues } from './form.ts';
import type { Route } from './route.ts';
import type { ConsoleDependencies, Visit } from './visit.ts';

/** What the console's middleware know of any request. */
export interface ConsoleState {
  requestId: string;
  /** The route's name, or `none`. */
  operation: string;
  code?: ErrorCode | FormCode;
  organizationId?: string;
  personId?: string;
  /** Never logged: for the frame of a page that says why there is no page. */
  visit?: Visit;
}

/** What the middleware of a route add, in the order of `pipeline.ts`. */
export interface RouteState extends ConsoleState {
  console: ConsoleDependencies;
  route: Route;
  visit: Visit;
  form: SentForm;
  /** Set with a session's cookie: its share of the session, and how long it waited for it. */
  sessionShare?: { reservation: Reservation; waitedMs: number };
}

interface SentForm {
  fields: URLSearchParams;
  /** The fields that the route's schema names. */
  values: FormValues;
  /** The same as the schema reads them; set by `validateForm`. */
  input: Record<string, unknown>;
}

export type RouteContext = RouterContext<RouteState>;
export type RouteMiddleware = RouterMiddleware<RouteState>;

/** Why a form was not carried out, for logs; the person reads a sentence. */
export type FormCode =
  | 'form_rejected'
  | 'permission_needed'
  | 'sign_in_unconfirmed'
  | 'passkey_needed'
  | 'provider_sign_in_needed'
  | 'form_of_another_site'
  | 'form_out_of_date'
  | 'form_sent_twice'
  | 'too_many_attempts'
  | 'busy'
  | 'client_gone'
  | 'sign_in_needed'
  | 'step_up_needed';
