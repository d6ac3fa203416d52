import { z } from 'zod';
import { removeFactor } from '#domain/identity/factors.ts';
import { redirect } from '../../web/answer.ts';
import { person } from '../../web/route.ts';
import { addFactorRoutes } from './add-factor.ts';
import { accountPage } from './page.ts';

/** Adds and removes the person's second factors, each with a fresh one. */
export const factorRoutes = [
  ...addFactorRoutes,
  person.action({
    name: 'removeFactor',
    path: '/account/factors/:factorId/remove',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, params, visitor }) {
      await removeFactor(console.em, session, { factorId: params.factorId ?? '', visitor }, console.now);
      return redirect('/account', { flash: 'Second factor removed. Your other sessions have ended.' });
    },
    rerender: accountPage,
  }),
];
