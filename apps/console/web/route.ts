import { z } from 'zod';
import type { Permission } from '#domain/contract/scopes.ts';
import type { Answer, Page } from './answer.ts';
import type { FormState } from './form.ts';
import type { Caller, ConsoleParts, MemberVisit, PersonVisit, Visit } from './visit.ts';

/**
 * Who may open a route. `anyone`: also without a session. `passed`: who has given the password at
 * least. `person`: who has signed in with both factors. `member`: such a person as an active member
 * of the organization in the path; for everybody else it is not there.
 */
export type Access = 'anyone' | 'passed' | 'person' | 'member';

/** One route, as mounted. `apps/console/routes.ts` lists them all; tests walk over that list. */
export interface Route {
  /** Stands in logs and metrics: `listKeys`. */
  name: string;
  method: 'GET' | 'POST';
  /**
   * With parameters: `/o/:orgId/keys/:keyId`. Those ending in `Id` are UUIDs, but for `personId`.
   */
  path: string;
  access: Access;
  /** What the member must hold; null: nothing beyond membership. */
  permission: Permission | null;
  /**
   * Whether the second factor is asked for again when it is older than 5 minutes (design, section
   * 7).
   */
  stepUp: boolean;
  /** Whether one drawing of its form can be sent once only: for what makes something. */
  once: boolean;
  /**
   * Refuses a form before anything is looked up for it, not even its session: without I/O. Null:
   * nothing is refused.
   */
  admit: ((console: ConsoleParts, caller: Caller, sent: URLSearchParams) => void) | null;
  /** Of the query (GET) or the form (POST). */
  schema: z.ZodObject;
  run: (visit: Visit, input: Record<string, unknown>) => Promise<Answer>;
  /** Draws the form again with what was typed and what is wrong. Null for GET. */
  redraw: ((visit: Visit, state: FormState) => Promise<Page>) | null;
}

type Awaitable<T> = T | Promise<T>;

interface View<V extends Visit, Q extends z.ZodObject> {
  name: string;
  path: string;
  permission?: Permission;
  /** The query. Every field has a `.catch()`: a bad link shows the page without its filter. */
  query?: Q;
  show: (visit: V, query: z.output<Q>) => Awaitable<Answer>;
}

interface Action<V extends Visit, F extends z.ZodObject> {
  name: string;
  path: string;
  permission?: Permission;
  stepUp?: boolean;
  once?: boolean;
  admit?: NonNullable<Route['admit']>;
  form: F;
  /**
   * Does it. A refusal of the domain (`KeyRefused` and the like) may pass through: the form is
   * drawn again with its sentence.
   */
  act: (visit: V, form: z.output<F>) => Awaitable<Answer>;
  redraw: (visit: V, state: FormState) => Awaitable<Page>;
}

/**
 * Declares the routes of one kind of visitor. The casts are safe because `session.ts` makes the visit
 * that the access names.
 */
function routesOf<V extends Visit>(access: Access, prefix: string) {
  return {
    /** A page to look at: GET, changes nothing. */
    view<Q extends z.ZodObject = z.ZodObject>(declared: View<V, Q>): Route {
      const { name, path, permission = null, query = z.object({}), show } = declared;
      return {
        name,
        method: 'GET',
        path: prefix + path,
        access,
        permission,
        schema: query,
        stepUp: false,
        once: false,
        admit: null,
        run: async (visit, input) => show(visit as V, input as z.output<Q>),
        redraw: null,
      };
    },

    /** A form that was sent: POST. */
    action<F extends z.ZodObject>(declared: Action<V, F>): Route {
      const { name, path, permission = null, stepUp = false, once = false, admit = null, form, act, redraw } = declared;
      return {
        name,
        method: 'POST',
        path: prefix + path,
        access,
        permission,
        stepUp,
        once,
        admit,
        schema: form,
        run: async (visit, input) => act(visit as V, input as z.output<F>),
        redraw: async (visit, state) => redraw(visit as V, state),
      };
    },
  };
}

/** Routes for everybody: signing in, enrolling. */
export const anyone = routesOf<Visit>('anyone', '');
/** Routes for whoever has given the password at least: the second factor. */
export const passed = routesOf<PersonVisit>('passed', '');
/** Routes of a person, in whatever organization: their account. */
export const person = routesOf<PersonVisit>('person', '');
/** Routes within an organization; paths begin after `/o/:orgId`. */
export const member = routesOf<MemberVisit>('member', '/o/:orgId');
