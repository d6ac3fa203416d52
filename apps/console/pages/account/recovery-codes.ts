import { z } from 'zod';
import { renewRecoveryCodes } from '#domain/identity/factors.ts';
import { linkButton } from '../../components/link.ts';
import { recoveryCodes, shownBefore } from '../../components/secret.ts';
import { page } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import { person } from '../../web/route.ts';
import { accountPage } from './page.ts';

/** Replaces the recovery codes. */
export const recoveryRoutes = [
  person.action({
    name: 'renewRecoveryCodes',
    path: '/account/recovery-codes',
    stepUp: true,
    once: true,
    form: z.object({}),
    async act({ console, session, visitor }) {
      const codes = await renewRecoveryCodes(console.em, session, visitor, console.now);
      return page({
        title: 'Your new recovery codes',
        breadcrumbs: [['Your account', '/account']],
        body: html`${recoveryCodes(codes)}<p class="actions">${linkButton('/account', 'I’ve saved them')}</p>`,
      });
    },
    again: () => shownBefore('The codes', 'If you didn’t store them, create new ones.', '/account', 'Your account'),
    rerender: accountPage,
  }),
];
