import { z } from 'zod';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { listValidKeys } from '#domain/keys/list.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { choiceField, form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { describeScope } from '../../components/reads.ts';
import { shownBefore } from '../../components/secret.ts';
import { choices, type FormState } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { keyName, quotedKey } from './cells.ts';
import { checkExpiry, expiryField, expiryFields, initialExpiry, readExpiry } from './expiry.ts';
import { keyTextFields, renderAllowedAddresses, renderNameFields } from './fields.ts';
import { newKey } from './first-call.ts';
import { fullPage } from './full.ts';

/** Creates an API key and shows it once. */
export const createRoutes = member.formPage({
  pageName: 'showNewKey',
  name: 'createKey',
  path: '/keys/new',
  permission: 'org.keys.manage',
  stepUp: true,
  once: true,
  values: () => initialExpiry,
  form: z
    .object({
      ...keyTextFields,
      scopes: choices(scopes).min(1, 'Choose at least one permission.'),
      ...expiryFields,
    })
    .superRefine(checkExpiry),
  async act(visit, { name: label, description, allowedAddresses, scopes, ...expiry }) {
    const { database, keys, now } = visit.console;
    const expiresAt = readExpiry(expiry, now());
    const texts = { label, description, allowedAddresses };
    const created = await createKey(database, { ...visit.request, ...texts, scopes, expiresAt }, keys, now);
    return page({
      title: 'API key created',
      breadcrumbs: [['API keys', visit.at('/keys')]],
      body: html`${newKey(visit, { key: created.key, label, scopes, expiresAt })}
        <p class="actions">${linkButton(visit.at(`/keys/${created.id}`), 'I’ve saved it')}</p>`,
    });
  },
  again: newestKey,
  render: newKeyPage,
});

/** Offers to rotate the newest key of the person who created one. */
async function newestKey(visit: MemberVisit): Promise<Html> {
  const { database, now } = visit.console;
  const validKeys = await listValidKeys(database, visit.organizationId, now());
  const newest = validKeys.find(({ creatorId }) => creatorId === visit.by.personId);
  if (newest === undefined) return html``;
  return shownBefore(
    'A new API key',
    html`If you didn’t store “${keyName(newest)}”, rotate it.`,
    visit.at(`/keys/${newest.id}/rotate`),
    `Rotate ${quotedKey(newest)}`,
  );
}

async function newKeyPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { database, now } = visit.console;
  const validKeys = await listValidKeys(database, visit.organizationId, now());
  if (validKeys.length >= validKeysPerOrganization) return fullPage(visit, validKeys);
  return page({
    title: 'Create API key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: form(visit, {
      state,
      button: 'Create API key',
      cancel: visit.at('/keys'),
      fields: html`
        ${renderNameFields(state)}
        ${choiceField(state, {
          name: 'scopes',
          label: 'Permissions',
          kind: 'checkbox',
          hint: 'Choose only what the system needs. A key never changes anything, and never reads more than you can.',
          choices: scopes.map((scope) => {
            const mayGrant = visit.may(scope);
            return {
              value: scope,
              label: html`Read ${describeScope(scope)} <code class="hint">${scope}</code>`,
              disabled: !mayGrant,
              hint: mayGrant ? null : 'Your roles don’t include this permission.',
            };
          }),
        })}
        ${expiryField(state, now())}
        ${renderAllowedAddresses(state)}`,
    }),
  });
}
