import { z } from 'zod';
import type { FirstFactor } from '#domain/identity/accept-link.ts';
import { setupExpired } from '#domain/identity/challenges.ts';
import { needsStepUp } from '#domain/identity/sessions.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { type FormState, freshForm, line } from '../web/form.ts';
import { type FormResponse, type Page, page } from '../web/response.ts';
import type { Route, Routes } from '../web/route.ts';
import { parsePasskeyResponse } from '../web/second-factor.ts';
import type { Visit } from '../web/visit.ts';
import { textField } from './form.ts';
import { newPasskeyForm } from './second-factor.ts';
import { totpDrawnAgain, totpFields, totpForm } from './totp-setup.ts';

/** Where a second factor is set up: in an account, or with a one-time link. */
interface FactorSetup<V extends Visit> {
  /** The paths of the four forms begin with it. */
  path: string;
  stepUp: boolean;
  /** Whether the person names the factor. */
  isNamed: boolean;
  /** Of the routes that start and verify an authenticator app, then a passkey. */
  names: readonly [startTotp: string, totp: string, startPasskey: string, passkey: string];
  titles: { totp: string; passkey: string; verify: string };
  breadcrumbs?: Page['breadcrumbs'];
  /** A link to the other method. */
  other?: Html;
  startTotp: (visit: V) => Promise<{ secret: string; uri: string }>;
  /** Returns the options for the browser. */
  startPasskey: (visit: V) => Promise<object>;
  /** Renders a page, unless what it is for has ended. */
  within?: (visit: V, render: () => Page | Promise<Page>) => Page | Promise<Page>;
  add: (visit: V, factor: FirstFactor & { name: string }) => Promise<FormResponse>;
  /** Renders the page from which a set-up starts. */
  rerender: (visit: V, state: FormState) => Page | Promise<Page>;
}

/** Returns the routes that set up a second factor: each kind is started, then verified. */
export function factorSetupRoutes<V extends Visit>({ action }: Routes<V>, setup: FactorSetup<V>): Route[] {
  const { path, stepUp, isNamed, names, titles, breadcrumbs = [], other, rerender } = setup;
  const within = setup.within ?? ((_visit, render) => render());
  const name = isNamed ? line('a name', 100) : z.string().default('');
  const nameField = (state: FormState) =>
    isNamed ? textField(state, { name: 'name', label: 'Name', maxLength: 100 }) : nothing;

  function totpPage(visit: V, state: FormState): Page | Promise<Page> {
    const drawn = totpDrawnAgain(state);
    if (drawn === null) return rerender(visit, { ...state, problem: state.problem ?? setupExpired().message });
    const parts = { action: `${path}/totp`, state, button: titles.verify, fields: nameField(state), secondary: other };
    return page({ title: titles.totp, breadcrumbs, body: totpForm(visit, drawn, parts) });
  }

  async function passkeyPage(visit: V, state: FormState): Promise<Page> {
    const options = await setup.startPasskey(visit);
    const fields = nameField(state);
    const form = newPasskeyForm(visit, { action: `${path}/passkey`, state, options, fields });
    const body = other === undefined ? form : html`${form}<p>${other}</p>`;
    return page({ title: titles.passkey, breadcrumbs, passkeys: true, body });
  }

  const start = { stepUp, form: z.object({}), rerender };
  return [
    action({
      ...start,
      name: names[0],
      path: `${path}/totp/start`,
      act: async (visit) =>
        totpPage(visit, freshForm({ name: 'Authenticator app', ...(await setup.startTotp(visit)) })),
    }),
    action({
      name: names[1],
      path: `${path}/totp`,
      stepUp,
      form: z.object({ name, ...totpFields }),
      act: (visit, { name, code }) => setup.add(visit, { kind: 'totp', name, code }),
      rerender: (visit, state) => within(visit, () => totpPage(visit, state)),
    }),
    action({
      ...start,
      name: names[2],
      path: `${path}/passkey/start`,
      act: (visit) => passkeyPage(visit, freshForm({ name: 'Passkey' })),
    }),
    action({
      name: names[3],
      path: `${path}/passkey`,
      stepUp,
      form: z.object({ name, passkey: z.string().default('') }),
      act: (visit, { name, passkey }) =>
        setup.add(visit, { kind: 'passkey', name, response: parsePasskeyResponse(passkey) }),
      // Without a fresh second factor no passkey is started, so that the form begins where it did.
      rerender: (visit, state) =>
        stepUp && visit.session !== null && needsStepUp(visit.session, visit.console.now())
          ? rerender(visit, state)
          : within(visit, () => passkeyPage(visit, state)),
    }),
  ];
}
