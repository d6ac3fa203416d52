import { z } from 'zod';
import type { Permission } from '#domain/contract/scopes.ts';
import type { Html } from '#runtime/pages/html.ts';
import { type FormState, type FormValues, freshForm, hasSecret, pickValues } from './form.ts';
import type { FormResponse, Page, RouteResponse } from './response.ts';
import type { Caller, ConsoleDependencies, MemberVisit, PersonVisit, Visit } from './visit.ts';

/**
 * Who may open a route: `anyone`, also without a session; `password`, after the password;
 * `person`, after both factors; `member`, such a person as an active member of the path's
 * organization (404 for everyone else).
 */
export type Access = 'anyone' | 'password' | 'person' | 'member';

/** One route. `apps/console/routes.ts` lists them all, for the routers and for tests. */
export interface Route {
  /** The name in logs and metrics: `listKeys`. */
  name: string;
  method: 'GET' | 'POST';
  /** With parameters: `/o/:orgId/keys/:keyId`. */
  path: string;
  access: Access;
  /** The permission that the member must hold; null: membership is enough. */
  permission: Permission | null;
  /**
   * Whether the second factor is required again when it is older than 5 minutes. Of a page: before it
   * is rendered, because a question after its form would have to contain the form's secret.
   */
  stepUp: boolean;
  /** Whether one rendering of the form can be submitted only once, as it creates something. */
  once: boolean;
  /**
   * Says what to do when the form is submitted again, as a reload of the page with its secret does.
   * Null: it shows no secret.
   */
  again: ((visit: Visit) => Awaitable<Html>) | null;
  /** Rejects a form before its session is looked up, without I/O. Null: it rejects nothing. */
  admit: ((console: ConsoleDependencies, caller: Caller, sent: URLSearchParams) => void) | null;
  /** Of the query (GET) or the form (POST). */
  schema: z.ZodObject;
  run: (visit: Visit, input: Record<string, unknown>) => Promise<RouteResponse>;
  /** Renders the form again with the input and its problems. Null for GET. */
  rerender: ((visit: Visit, state: FormState) => Promise<Page>) | null;
}

type Awaitable<T> = T | Promise<T>;

interface View<V extends Visit, Q extends z.ZodObject> {
  name: string;
  path: string;
  permission?: Permission;
  /** The query. Every field has a `.catch()`, so a bad link shows the page without its filter. */
  query?: Q;
  stepUp?: boolean;
  show: (visit: V, query: z.output<Q>) => Awaitable<RouteResponse>;
}

interface Action<V extends Visit, F extends z.ZodObject> extends Partial<Pick<Route, 'stepUp' | 'once'>> {
  name: string;
  path: string;
  permission?: Permission;
  admit?: NonNullable<Route['admit']>;
  /** For a form that shows a secret once: what to do instead of submitting it again. */
  again?: (visit: V) => Awaitable<Html>;
  form: F;
  /** Carries the form out. An error of the domain (`KeyError`) renders the form again. */
  act: (visit: V, form: z.output<F>) => Awaitable<FormResponse>;
  rerender: (visit: V, state: FormState) => Awaitable<Page>;
}

interface FormPage<V extends Visit, F extends z.ZodObject, Q extends z.ZodObject>
  extends Omit<Action<V, F>, 'rerender'>,
    Pick<View<V, Q>, 'query'> {
  /** The name of the page in logs and metrics; `name` is that of its form. */
  pageName: string;
  /** Returns the initial values of the fields. */
  values?: (query: z.output<Q>, visit: V) => Awaitable<FormValues>;
  /** Renders the page. After a rejected form, the query is that of a page without one. */
  render: (visit: V, state: FormState, query: z.output<Q>) => Awaitable<Page>;
}

/**
 * Declares the routes of one kind of visitor. The casts are safe because `session.ts` makes the
 * visit that the access names.
 */
function declareRoutes<V extends Visit>(access: Access, prefix: string) {
  /** A page: GET, changes nothing. */
  function view<Q extends z.ZodObject = z.ZodObject>(declared: View<V, Q>): Route {
    const { name, path, permission = null, query = z.object({}), stepUp = false, show } = declared;
    return {
      name,
      method: 'GET',
      path: prefix + path,
      access,
      permission,
      schema: query,
      stepUp,
      once: false,
      admit: null,
      again: null,
      run: async (visit, input) => show(visit as V, input as z.output<Q>),
      rerender: null,
    };
  }

  /** A form: POST. */
  function action<F extends z.ZodObject>(declared: Action<V, F>): Route {
    const {
      name,
      path,
      permission = null,
      stepUp = false,
      once = false,
      admit = null,
      form,
      act,
      rerender,
      again,
    } = declared;
    return {
      name,
      method: 'POST',
      path: prefix + path,
      access,
      permission,
      stepUp,
      once,
      admit,
      again: again === undefined ? null : (visit) => again(visit as V),
      schema: form,
      run: async (visit, input) => act(visit as V, input as z.output<F>),
      rerender: async (visit, state) => rerender(visit as V, state),
    };
  }

  /** A page with one form, at one path: GET renders it, POST carries it out. */
  function formPage<F extends z.ZodObject, Q extends z.ZodObject = z.ZodObject>(declared: FormPage<V, F, Q>): Route[] {
    const { pageName, query = z.object({}) as unknown as Q, values, render, ...form } = declared;
    const show = async (visit: V, given: z.output<Q>) => render(visit, freshForm(await values?.(given, visit)), given);
    const { path, permission } = form;
    const stepUp = form.stepUp === true && hasSecret(form.form);
    const noQuery = query.parse(pickValues(query, new URLSearchParams()));
    return [
      view({ name: pageName, path, query, stepUp, show, ...(permission === undefined ? {} : { permission }) }),
      action({ ...form, rerender: (visit, state) => render(visit, state, noQuery) }),
    ];
  }

  return { view, action, formPage };
}

/** Declares the routes of a kind of visitor. */
export type Routes<V extends Visit> = ReturnType<typeof declareRoutes<V>>;

/** Routes for everyone: sign-in, enrolment. */
export const anyone = declareRoutes<Visit>('anyone', '');
/** Routes after the password: the second factor. */
export const afterPassword = declareRoutes<PersonVisit>('password', '');
/** Routes of a person in any organization: their account. */
export const person = declareRoutes<PersonVisit>('person', '');
/** Routes within an organization. Paths begin after `/o/:orgId`. */
export const member = declareRoutes<MemberVisit>('member', '/o/:orgId');
