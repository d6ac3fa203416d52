import { z } from 'zod';
import { regionCodes, regions } from '#domain/contract/regions.ts';
import { findCompromisedKey } from '#domain/keys/compromised.ts';
import { displayName } from '../../components/display-name.ts';
import { form, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

/**
 * A key that was seen in a log, a chat or a repository: pasted, found, revoked. What is pasted is
 * in the body of one POST and nowhere else: the field is never drawn with what was typed, the
 * question for the second factor (which carries its form along) comes only with the revocation, and
 * that names the key by its id.
 */
export const compromisedRoutes = [
  member.view({
    name: 'showCompromisedKey',
    path: '/keys/compromised',
    permission: 'org.keys.manage',
    show: (visit) => compromisedPage(visit, freshForm()),
  }),

  member.action({
    name: 'findCompromisedKey',
    path: '/keys/compromised',
    permission: 'org.keys.manage',
    form: z.object({
      key: z.string({ error: 'Paste the key.' }).min(1, 'Paste the key.').max(10_000, 'Paste the key alone.'),
    }),
    async act(visit, { key: text }) {
      const { em, keys, now } = visit.console;
      const { organizationId } = visit.organization;
      const asked = { organizationId, personId: visit.by.personId, text, address: visit.visitor.address };
      const found = await findCompromisedKey(em, asked, keys, now);
      return found === null ? notOurs(visit) : redirect(visit.at(`/keys/${found.keyId}/revoke?reported=yes`));
    },
    redraw: compromisedPage,
  }),
];

function compromisedPage(visit: MemberVisit, { problem, problems }: FormState): Page {
  // Never what was typed.
  const state = { ...freshForm(), problem, problems };
  return page({
    title: 'A key got out?',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      <p>If an API key stands where it should not (a log, a chat, a repository), paste it here. The console finds which one it is, and you can revoke it at once.</p>
      ${form(visit, {
        action: visit.at('/keys/compromised'),
        state,
        button: 'Find the key',
        secondary: html`<a href="${visit.at('/keys')}">Back</a>`,
        fields: textField(state, {
          name: 'key',
          label: 'The key, or the line it stands in',
          exact: true,
          masked: true,
          hint: 'It is compared and forgotten: not stored, not logged, not shown again.',
        }),
      })}`,
  });
}

/**
 * One answer for every key that is not this organization's, whoever's it is: it says what to do,
 * and nothing about the key.
 */
function notOurs(visit: MemberVisit): Page {
  const elsewhere = regionCodes.filter((code) => code !== visit.console.region);
  return page({
    title: 'Not a key of this organization',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: html`
      <p>${displayName(visit.organization.organizationName)} has no key like that, live or ended, so there is nothing here to revoke. If you expected one:</p>
      <ul>
        <li>Look whether it was copied whole. A character too few is another key.</li>
        <li>Keys that begin with ${prefixes(elsewhere)} belong to another region: paste it in that region’s console.</li>
        <li>If you belong to several organizations, paste it in each.</li>
        <li>If it is not yours at all, tell whoever you got it from. Nobody can see from here whose it is.</li>
      </ul>
      <p class="actions">${linkButton(visit.at('/keys/compromised'), 'Paste another', 'secondary')}</p>`,
  });
}

const prefixes = (codes: readonly (typeof regionCodes)[number][]): Html =>
  html`${codes.map((code, index) => html`${index === 0 ? '' : ' or '}<code>${regions[code].keyPrefix}</code>`)}`;
