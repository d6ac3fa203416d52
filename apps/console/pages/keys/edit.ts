import { z } from 'zod';
import { changeKey } from '#domain/keys/change.ts';
import { listCallers } from '#domain/keys/list.ts';
import { html } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { keyBreadcrumbs, notValid, quotedKey } from './cells.ts';
import { keyTextFields, renderAllowedAddresses, renderNameFields } from './fields.ts';
import { getKey } from './find-key.ts';

/** Changes a key's name, description and allowed addresses. */
export const editRoutes = member.formPage({
  pageName: 'showEditKey',
  name: 'editKey',
  path: '/keys/:keyId/edit',
  permission: 'org.keys.manage',
  stepUp: true,
  async values(_query, visit) {
    const { label: name, description, allowedAddresses } = await getKey(visit);
    return { name, description, allowedAddresses: allowedAddresses.join('\n') };
  },
  form: z.object(keyTextFields),
  async act(visit, { name: label, ...fields }) {
    const { database, now } = visit.console;
    const { id } = await getKey(visit);
    await changeKey(database, { ...visit.request, keyId: id, label, ...fields }, now);
    return redirect(visit.at(`/keys/${id}`), { flash: 'API key updated.' });
  },
  render: editPage,
});

async function editPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const key = await getKey(visit);
  const { database } = visit.console;
  return page({
    title: `Edit ${quotedKey(key)}`,
    breadcrumbs: keyBreadcrumbs(visit, key),
    body:
      key.state !== 'valid'
        ? notice('bad', `This key ${notValid[key.state]}. You can’t change it.`)
        : html`
          <p>Changes apply to the next call. The key itself and its permissions stay the same.</p>
          ${form(visit, {
            state,
            button: 'Save API key',
            cancel: visit.at(`/keys/${key.id}`),
            fields: html`${renderNameFields(state)}
              ${renderAllowedAddresses(state, await listCallers(database, visit.organizationId, key.id))}`,
          })}`,
  });
}
