import { z } from 'zod';
import { keyRotationOverlapMaxDays, liveKeysPerOrganization } from '#domain/contract/limits.ts';
import { type RotatedKey, rotateKey } from '#domain/keys/rotate.ts';
import { type KeyUsage, listLiveKeys } from '#domain/keys/usage.ts';
import { displayName } from '../../components/display-name.ts';
import { form, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { overlapField } from '../../components/overlap.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { keyName, keyTitle } from './cells.ts';
import { expiryField, expiryFields, expiryGiven, freshExpiry, readExpiry } from './expiry.ts';
import { getKey } from './find-key.ts';
import { newKey } from './first-call.ts';

/** How long both keys work, in hours. */
const overlap = overlapField(keyRotationOverlapMaxDays, {
  none: 'No overlap. The old key stops working immediately.',
  problem: 'Choose how long both keys work.',
});

/** Replaces a key by one with the same name and scopes. Both work for the chosen overlap. */
export const rotateRoutes = [
  member.view({
    name: 'showRotateKey',
    path: '/keys/:keyId/rotate',
    permission: 'org.keys.manage',
    show: (visit) => rotatePage(visit, freshForm({ overlapHours: '24', ...freshExpiry })),
  }),

  member.action({
    name: 'rotateKey',
    path: '/keys/:keyId/rotate',
    permission: 'org.keys.manage',
    stepUp: true,
    once: true,
    form: z
      .object({
        overlapHours: overlap.hours(z.string()),
        ...expiryFields,
      })
      .superRefine(expiryGiven),
    async act(visit, { overlapHours: hours, ...expiry }) {
      const { em, keys, now } = visit.console;
      const old = await getKey(visit);
      const rotated = await rotateKey(
        em,
        {
          organizationId: visit.organization.organizationId,
          keyId: old.id,
          makerId: visit.by.personId,
          overlapSeconds: hours * 3600,
          expiresAt: readExpiry(expiry, now()),
          address: visit.visitor.address,
        },
        keys,
        now,
      );
      return page({
        title: 'API key rotated',
        breadcrumbs: breadcrumbsOf(visit, old),
        body: html`${overlapNotice(rotated, hours, now())}
          ${newKey(visit, { key: rotated.key, scopes: old.scopes })}
          <p class="actions">${linkButton(visit.at(`/keys/${rotated.id}`), 'I’ve saved it')}</p>`,
      });
    },
    redraw: rotatePage,
  }),
];

/** Says when the old key stops, which may be sooner than requested. */
function overlapNotice({ predecessorEndsAt }: RotatedKey, hours: number, now: Date): Html {
  if (predecessorEndsAt > now)
    return notice('info', html`The old key works until ${time(predecessorEndsAt)}. Update your system before then.`);
  return hours === 0
    ? notice('warning', 'The old key has stopped working. Update your system now.')
    : notice(
        'warning',
        `The old key has stopped working, because your organization has the maximum of ${liveKeysPerOrganization} ` +
          'active keys. Update your system now.',
      );
}

const breadcrumbsOf = (visit: MemberVisit, key: KeyUsage) =>
  [
    [keyTitle(key), visit.at(`/keys/${key.id}`)],
    ['API keys', visit.at('/keys')],
  ] as const;

async function rotatePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { pool, now } = visit.console;
  const key = await getKey(visit);
  const isFull = (await listLiveKeys(pool, visit.organization.organizationId, now())).length >= liveKeysPerOrganization;
  const missing = key.scopes.filter((scope) => !visit.may(scope));
  return page({
    title: `Rotate API key ${keyTitle(key)}`,
    breadcrumbs: breadcrumbsOf(visit, key),
    body: html`
      <p>Replaces ${keyName(key)} with a new key with the same name and permissions.</p>
      ${key.makerId === visit.by.personId ? nothing : newOwner(key)}
      ${obstacle(key, missing) ?? rotateForm(visit, state, key, isFull)}`,
  });
}

const notLive = { revoked: 'is revoked', expired: 'has expired', inactive: 'is inactive' } as const;

/** Returns why this person cannot rotate the key now; null when they can. */
function obstacle(key: KeyUsage, missing: readonly string[]): Html | null {
  if (key.state !== 'live') return notice('bad', `This key ${notLive[key.state]}. Create a new key instead.`);
  if (missing.length > 0)
    return notice(
      'bad',
      `You can’t rotate this key, because your roles don’t include ${missing.join(', ')}. ` +
        'Ask a member who has these permissions.',
    );
  return null;
}

const newOwner = ({ makerName }: KeyUsage): Html =>
  notice(
    'info',
    html`The old key belongs to ${displayName(makerName)}. You will own the new key, which can never read more than you
      can.`,
  );

const noOverlap =
  `Your organization has the maximum of ${liveKeysPerOrganization} active keys, so the old key stops working ` +
  'immediately. To have an overlap, revoke another key first.';

function rotateForm(visit: MemberVisit, state: FormState, key: KeyUsage, isFull: boolean): Html {
  return form(visit, {
    action: visit.at(`/keys/${key.id}/rotate`),
    state,
    button: `Rotate API key ${keyTitle(key)}`,
    secondary: html`<a href="${visit.at(`/keys/${key.id}`)}">Cancel</a>`,
    fields: html`
      ${isFull ? notice('warning', noOverlap) : nothing}
      ${selectField(state, {
        name: 'overlapHours',
        label: 'Overlap',
        options: overlap.choices,
        hint:
          `How long both keys work, up to ${keyRotationOverlapMaxDays} days. ` +
          'If the old key leaked, choose “No overlap”.',
      })}
      ${expiryField(state, visit.console.now())}`,
  });
}
