import { z } from 'zod';
import { endOtherSessions, endSession } from '#domain/identity/sessions.ts';
import { countOf } from '../../components/count.ts';
import { redirect } from '../../web/answer.ts';
import { person } from '../../web/route.ts';
import { accountPage } from './page.ts';

/** Ends one or all of a person's other sessions, with a fresh second factor (ASVS 7.5.2). */
export const sessionRoutes = [
  person.action({
    name: 'endSession',
    path: '/account/sessions/:sessionId/end',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, params, visitor }) {
      const sessionId = params.sessionId ?? '';
      await endSession(console.em, session, sessionId, visitor);
      return sessionId === session.id
        ? redirect('/sign-in', { flash: 'You are signed out.', session: 'ended' })
        : redirect('/account', { flash: 'Session ended.' });
    },
    rerender: accountPage,
  }),

  person.action({
    name: 'endOtherSessions',
    path: '/account/sessions/end-others',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, visitor }) {
      const ended = await endOtherSessions(console.em, session, visitor);
      return redirect('/account', {
        flash: countOf(ended, 'other session ended.', 'other sessions ended.'),
      });
    },
    rerender: accountPage,
  }),
];
