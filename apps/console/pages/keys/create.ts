import { z } from 'zod';
import { reads } from '#domain/activity/sentences.ts';
import { liveKeysPerOrganization } from '#domain/contract/limits.ts';
import { operationsOfScope } from '#domain/contract/operations.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { listLiveKeys } from '#domain/keys/usage.ts';
import { choiceField, form, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type Page, page } from '../../web/answer.ts';
import { choices, type FormState, freshForm, line } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { expiryField, expiryFields, expiryGiven, freshExpiry, readExpiry } from './expiry.ts';
import { newKey } from './first-call.ts';
import { fullPage } from './full.ts';

/** Creates an API key and shows it once. */
export const createRoutes = [
  member.view({
    name: 'showNewKey',
    path: '/keys/new',
    permission: 'org.keys.manage',
    show: (visit) => newKeyPage(visit, freshForm(freshExpiry)),
  }),

  member.action({
    name: 'createKey',
    path: '/keys/new',
    permission: 'org.keys.manage',
    stepUp: true,
    once: true,
    form: z
      .object({
        name: line('a name', 100),
        scopes: choices(scopes).min(1, 'Choose at least one permission.'),
        ...expiryFields,
      })
      .superRefine(expiryGiven),
    async act(visit, { name: label, scopes, ...expiry }) {
      const { em, keys, now } = visit.console;
      const created = await createKey(
        em,
        {
          organizationId: visit.organization.organizationId,
          makerId: visit.by.personId,
          label,
          scopes,
          expiresAt: readExpiry(expiry, now()),
          address: visit.visitor.address,
        },
        keys,
        now,
      );
      return page({
        title: 'API key created',
        breadcrumbs: [['API keys', visit.at('/keys')]],
        body: html`${newKey(visit, { key: created.key, scopes })}
          <p class="actions">${linkButton(visit.at(`/keys/${created.id}`), 'I’ve saved it')}</p>`,
      });
    },
    redraw: newKeyPage,
  }),
];

async function newKeyPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { pool, now } = visit.console;
  const live = await listLiveKeys(pool, visit.organization.organizationId, now());
  if (live.length >= liveKeysPerOrganization) return fullPage(visit, live);
  return page({
    title: 'Create API key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: form(visit, {
      action: visit.at('/keys/new'),
      state,
      button: 'Create API key',
      secondary: html`<a href="${visit.at('/keys')}">Cancel</a>`,
      fields: html`
        ${textField(state, {
          name: 'name',
          label: 'Name',
          maxLength: 100,
          hint: 'The system that uses the key, for example “Monthly report”.',
        })}
        ${choiceField(state, {
          name: 'scopes',
          label: 'Permissions',
          kind: 'checkbox',
          hint: 'Choose only what the system needs. The key can never read more than you can.',
          choices: scopes.map((scope) => {
            const isHeld = visit.may(scope);
            const what = operationsOfScope[scope].map((operation) => reads[operation] ?? operation).join(', ');
            return {
              value: scope,
              label: html`Read ${what} <code class="hint">${scope}</code>`,
              disabled: !isHeld,
              hint: isHeld ? null : 'Your roles don’t include this permission.',
            };
          }),
        })}
        ${expiryField(state, now())}`,
    }),
  });
}
