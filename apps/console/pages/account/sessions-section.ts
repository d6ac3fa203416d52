import { listSessions } from '#domain/identity/sessions.ts';
import type { SessionRow } from '#domain/identity/types.ts';
import { buttonForm } from '../../components/form.ts';
import { badge } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { describeBrowser } from './browser.ts';

/** Renders a person's sessions, with forms to end them. */
export async function sessionsSection(visit: PersonVisit): Promise<Html> {
  const { console, session } = visit;
  const sessions = await listSessions(console.em, session, console.now());
  return html`<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>
    <p>A session ends after 30 minutes of inactivity or after 12 hours. If you don’t recognize one, end it and change
      your password.</p>
    ${table<SessionRow>({
      caption: 'Your sessions',
      columns: [
        {
          heading: 'Browser',
          main: true,
          cell: ({ userAgent, isThis }) =>
            html`${describeBrowser(userAgent)} ${isThis ? badge('good', 'This browser') : nothing}`,
        },
        { heading: 'IP address', cell: ({ address }) => address ?? '–' },
        { heading: 'Signed in', cell: ({ createdAt }) => time(createdAt) },
        { heading: 'Last used', cell: ({ lastSeenAt }) => relativeTime(lastSeenAt) },
      ],
      rows: sessions,
      actions: ({ id, userAgent, isThis }) =>
        buttonForm(visit, {
          action: isThis ? '/sign-out' : `/account/sessions/${id}/end`,
          button: isThis ? 'Sign out' : 'End session',
          about: `the session of ${describeBrowser(userAgent)}`,
        }),
    })}
    ${
      sessions.length > 1
        ? buttonForm(visit, { action: '/account/sessions/end-others', button: 'End other sessions' })
        : nothing
    }
  </section>`;
}
