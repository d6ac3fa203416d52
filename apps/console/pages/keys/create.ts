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

/** Making a key: the only place where one is shown. */
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
        name: line('The name', 100),
        scopes: choices(scopes).min(1, 'Choose what the key may read: one scope at least.'),
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
        title: 'Your new key',
        breadcrumbs: [['API keys', visit.at('/keys')]],
        body: html`${newKey(visit, { key: created.key, scopes })}
          <p class="actions">${linkButton(visit.at(`/keys/${created.id}`), 'I’ve saved it')}</p>`,
      });
    },
    redraw: newKeyPage,
  }),
];

const capitalized = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

async function newKeyPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { pool, now } = visit.console;
  const live = await listLiveKeys(pool, visit.organization.organizationId, now());
  if (live.length >= liveKeysPerOrganization) return fullPage(visit, live);
  return page({
    title: 'Make an API key',
    breadcrumbs: [['API keys', visit.at('/keys')]],
    body: form(visit, {
      action: visit.at('/keys/new'),
      state,
      button: 'Make the key',
      secondary: html`<a href="${visit.at('/keys')}">Back</a>`,
      fields: html`
        ${textField(state, { name: 'name', label: 'Name', maxLength: 100, hint: 'What uses it, so that you know later what stops when you revoke it: “Monthly report”, “Intake system”.' })}
        ${choiceField(state, {
          name: 'scopes',
          label: 'What it may read',
          kind: 'checkbox',
          hint: 'Choose as little as the system needs. The key acts with your rights: it stops reading what you may no longer read.',
          choices: scopes.map((scope) => {
            const isHeld = visit.may(scope);
            const what = operationsOfScope[scope].map((operation) => reads[operation] ?? operation).join(', ');
            return {
              value: scope,
              label: html`${capitalized(what)} <code class="hint">${scope}</code>`,
              disabled: !isHeld,
              hint: isHeld ? null : 'Not yours to give: none of your roles holds it.',
            };
          }),
        })}
        ${expiryField(state, now())}`,
    }),
  });
}
