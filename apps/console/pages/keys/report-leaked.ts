import { z } from 'zod';
import { regionCodes, regions } from '#domain/contract/regions.ts';
import { findCompromisedKey } from '#domain/keys/compromised.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { form, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { displayName } from '../../components/text.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

/**
 * Finds a leaked key that a person pastes, and leads to its revocation. Only the body of one POST
 * contains the pasted text: no page shows it again, and no step-up carries it.
 */
export const compromisedRoutes = member.formPage({
  pageName: 'showCompromisedKey',
  name: 'findCompromisedKey',
  path: '/keys/compromised',
  permission: 'org.keys.manage',
  form: z.object({
    key: z.string({ error: 'Paste the key.' }).min(1, 'Paste the key.').max(10_000, 'Paste the key alone.'),
  }),
  async act(visit, { key: text }) {
    const { database, keys, now } = visit.console;
    const found = await findCompromisedKey(
      database,
      { organizationId: visit.organizationId, ...visit.by, text },
      keys,
      now,
    );
    return found === null ? notFoundPage(visit) : redirect(visit.at(`/keys/${found.keyId}/revoke?reported=yes`));
  },
  render: compromisedPage,
});

function compromisedPage(visit: MemberVisit, { problem, problems }: FormState): Page {
  // Without values: the pasted text is never rendered again.
  const state = { ...freshForm(), problem, problems };
  return page({
    title: 'Report a leaked key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      <p>If an API key appeared in a log, a chat or a repository, paste it here to find and revoke it.</p>
      ${form(visit, {
        state,
        button: 'Find API key',
        cancel: visit.at('/keys'),
        fields: textField(state, {
          name: 'key',
          label: 'API key, or text that contains it',
          exact: true,
          masked: true,
          hint: 'The text is not stored or logged.',
        }),
      })}`,
  });
}

/** Returns the same page for every key of another organization, so that it reveals nothing. */
function notFoundPage(visit: MemberVisit): Page {
  const elsewhere = regionCodes.filter((code) => code !== visit.console.region);
  return page({
    title: 'API key not found',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      <p>${displayName(visit.organization.organizationName)} has no such API key. If you expected one:</p>
      <ul>
        <li>Check that you copied the whole key.</li>
        <li>Keys that begin with ${prefixes(elsewhere)} belong to another region. Paste the key in that region’s
          console.</li>
        <li>If you are a member of several organizations, try each of them.</li>
        <li>If the key is not yours, contact the person who shared it. The console can’t show its creator.</li>
      </ul>
      <p class="actions">${linkButton(visit.at('/keys/compromised'), 'Paste another key', 'secondary')}</p>`,
  });
}

const prefixes = (codes: readonly (typeof regionCodes)[number][]): Html =>
  html`${codes.map((code, index) => html`${index === 0 ? '' : ' or '}<code>${regions[code].keyPrefix}</code>`)}`;
