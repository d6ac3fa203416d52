import { z } from 'zod';
import { keyRotationOverlapMaxDays, validKeysPerOrganization } from '#domain/contract/limits.ts';
import { type KeyUsage, listValidKeys } from '#domain/keys/list.ts';
import { type RotatedKey, rotateKey } from '#domain/keys/rotate.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { overlapField } from '../../components/overlap.ts';
import { shownBefore } from '../../components/secret.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { keyBreadcrumbs, keyName, notValid, quotedKey } from './cells.ts';
import { checkExpiry, expiryField, expiryFields, initialExpiry, readExpiry } from './expiry.ts';
import { getKey } from './find-key.ts';
import { newKey } from './first-call.ts';

/** How long both keys work, in hours. */
const overlap = overlapField(keyRotationOverlapMaxDays, 'key', 'work');

/**
 * Replaces a key by one with the same name, description, scopes and allowed addresses. Both work for the
 * chosen overlap.
 */
export const rotateRoutes = member.formPage({
  pageName: 'showRotateKey',
  name: 'rotateKey',
  path: '/keys/:keyId/rotate',
  permission: 'org.keys.manage',
  stepUp: true,
  once: true,
  values: () => ({ overlapHours: '24', ...initialExpiry }),
  form: z.object({ overlapHours: overlap.schema, ...expiryFields }).superRefine(checkExpiry),
  async act(visit, { overlapHours: hours, ...expiry }) {
    const { database, keys, now } = visit.console;
    const old = await getKey(visit);
    const change = { keyId: old.id, overlapSeconds: hours * 3600, expiresAt: readExpiry(expiry, now()) };
    const rotated = await rotateKey(database, { ...visit.request, ...change }, keys, now);
    return page({
      title: 'API key rotated',
      breadcrumbs: keyBreadcrumbs(visit, old),
      body: html`${overlapNotice(rotated, hours, now())}
        ${newKey(visit, { ...rotated, label: old.label, scopes: old.scopes, expiresAt: change.expiresAt })}
        <p class="actions">${linkButton(visit.at(`/keys/${rotated.id}`), 'I’ve saved it')}</p>`,
    });
  },
  again: newKeyAgain,
  render: rotatePage,
});

/** Offers to rotate the key that replaced the one in the path. */
async function newKeyAgain(visit: MemberVisit): Promise<Html> {
  const old = await getKey(visit);
  return shownBefore(
    'The new API key',
    'If you didn’t store it, rotate the new key.',
    visit.at(`/keys/${old.successorId ?? old.id}/rotate`),
    'Rotate API key',
  );
}

/** States when the old key stops, which can be sooner than requested. */
function overlapNotice({ predecessorEndsAt }: RotatedKey, hours: number, now: Date): Html {
  if (predecessorEndsAt > now)
    return notice('info', html`The old key works until ${time(predecessorEndsAt)}. Update your system before then.`);
  return hours === 0
    ? notice('warning', 'The old key has stopped working. Update your system now.')
    : notice(
        'warning',
        `The old key has stopped working, because your organization has the maximum of ${validKeysPerOrganization} ` +
          'active keys. Update your system now.',
      );
}

async function rotatePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { database, now } = visit.console;
  const key = await getKey(visit);
  const isFull = (await listValidKeys(database, visit.organizationId, now())).length >= validKeysPerOrganization;
  const missing = key.scopes.filter((scope) => !visit.may(scope));
  return page({
    title: `Rotate ${quotedKey(key)}`,
    breadcrumbs: keyBreadcrumbs(visit, key),
    body: html`
      <p>Replaces ${keyName(key)} with a new key with the same name, permissions and allowed IP addresses.</p>
      ${key.state === 'valid' && key.successorId !== null ? replaced(visit, key.successorId) : nothing}
      ${key.creatorId === visit.by.personId ? nothing : newCreator(key)}
      ${obstacle(key, missing) ?? rotateForm(visit, state, key, isFull)}`,
  });
}

/** Returns why this person cannot rotate the key now; null when they can. */
function obstacle(key: KeyUsage, missing: readonly string[]): Html | null {
  if (key.state !== 'valid') return notice('bad', `This key ${notValid[key.state]}. Create a new key instead.`);
  if (missing.length === 0) return null;
  const why = `You can’t rotate this key, because your roles don’t include ${missing.join(', ')}. `;
  return notice('bad', `${why}Ask a member who has these permissions.`);
}

const replaced = (visit: MemberVisit, successorId: string): Html =>
  notice(
    'warning',
    html`This key was already replaced by <a href="${visit.at(`/keys/${successorId}`)}">another key</a>. Rotate it again
      only if you need one more key.`,
  );

const newCreator = ({ creatorName }: KeyUsage): Html =>
  notice(
    'info',
    html`The creator of the old key is ${displayName(creatorName)}. You will be the creator of the new key, which can
      never read more than you can.`,
  );

const noOverlap =
  `Your organization has the maximum of ${validKeysPerOrganization} active keys, so the old key stops working ` +
  'immediately. To have an overlap, revoke another key first.';

function rotateForm(visit: MemberVisit, state: FormState, key: KeyUsage, isFull: boolean): Html {
  return form(visit, {
    state,
    button: `Rotate ${quotedKey(key)}`,
    cancel: visit.at(`/keys/${key.id}`),
    fields: html`
      ${isFull ? notice('warning', noOverlap) : nothing}
      ${overlap.render(state)}
      ${expiryField(state, visit.console.now())}`,
  });
}
