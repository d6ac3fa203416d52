import type { FactorRow } from '#domain/identity/types.ts';
import { confirm } from '../../components/confirm.ts';
import { buttonForm } from '../../components/form.ts';
import { table } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';
import type { PersonVisit } from '../../web/visit.ts';

const kinds = { totp: 'Authenticator app', passkey: 'Passkey' } as const;

/** Renders a person's second factors, with forms to add and to remove them. */
export function factorsSection(visit: PersonVisit, factors: readonly FactorRow[]): Html {
  return html`<section aria-labelledby="factors"><h2 id="factors">Second factors</h2>
    <p>Add at least two, so that you can sign in if you lose one. A passkey is faster than a code and resists
      phishing.</p>
    ${table<FactorRow>({
      caption: 'Your second factors',
      columns: [
        { heading: 'Name', main: true, cell: ({ name }) => name },
        { heading: 'Type', cell: ({ kind }) => kinds[kind] },
        { heading: 'Added', cell: ({ createdAt }) => time(createdAt) },
        { heading: 'Last used', cell: ({ lastUsedAt }) => relativeTime(lastUsedAt, 'Never') },
      ],
      rows: factors,
      actions: ({ id, name }) =>
        factors.length === 1
          ? html`<span class="quiet">Required</span>`
          : confirm(visit, {
              summary: 'Remove…',
              about: name,
              consequences: html`<p>You can no longer sign in with “${name}”. Your other sessions end.</p>`,
              action: `/account/factors/${id}/remove`,
              button: `Remove ${name}`,
            }),
    })}
    <div class="actions">
      ${buttonForm(visit, { action: '/account/factors/passkey/start', button: 'Add a passkey' })}
      ${buttonForm(visit, { action: '/account/factors/totp/start', button: 'Add an authenticator app' })}
    </div></section>`;
}
