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

/** How long both keys may work, in hours. */
const overlap = overlapField(keyRotationOverlapMaxDays, {
  none: 'Not at all: the old key stops at once',
  problem: 'Choose how long both keys work.',
});

/** Replacing a key by a successor with the same name and scopes, with both working for a while. */
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
        title: 'Your new key',
        breadcrumbs: breadcrumbsOf(visit, old),
        body: html`${whatBecame(rotated, hours, now())}
          ${newKey(visit, { key: rotated.key, scopes: old.scopes })}
          <p class="actions">${linkButton(visit.at(`/keys/${rotated.id}`), 'I’ve saved it')}</p>`,
      });
    },
    redraw: rotatePage,
  }),
];

/** When the old key stops, also where that is sooner than was asked for. */
function whatBecame({ predecessorEndsAt }: RotatedKey, hours: number, now: Date): Html {
  if (predecessorEndsAt > now)
    return notice('info', html`The old key works until ${time(predecessorEndsAt)}. Put the new one in place before.`);
  return hours === 0
    ? notice('warning', 'The old key has stopped. Put the new one in place now.')
    : notice(
        'warning',
        `The old key has stopped already: with ${liveKeysPerOrganization} live keys there was no room for both. Put the new one in place now.`,
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
    title: 'Rotate the key',
    breadcrumbs: breadcrumbsOf(visit, key),
    body: html`
      <p>A new key takes the place of ${keyName(key)}: same name, same scopes. Put it where the old one is now.</p>
      ${key.makerId === visit.by.personId ? nothing : notice('info', html`The old key acts for ${displayName(key.makerName)}; the new one will act for you, and rest on your rights.`)}
      ${problemOf(key, missing) ?? rotateForm(visit, state, key, isFull)}`,
  });
}

const notLive = { revoked: 'is revoked', expired: 'has expired', inactive: 'is inactive' } as const;

/** Why it cannot be rotated by this person, or now; null: it can. */
function problemOf(key: KeyUsage, missing: readonly string[]): Html | null {
  if (key.state !== 'live') return notice('bad', `The key ${notLive[key.state]}. Create a new key instead.`);
  if (missing.length > 0)
    return notice(
      'bad',
      `You cannot rotate it: none of your roles holds ${missing.join(', ')}, which the new key would carry. Somebody who holds it can.`,
    );
  return null;
}

function rotateForm(visit: MemberVisit, state: FormState, key: KeyUsage, isFull: boolean): Html {
  return form(visit, {
    action: visit.at(`/keys/${key.id}/rotate`),
    state,
    button: 'Make the new key',
    secondary: html`<a href="${visit.at(`/keys/${key.id}`)}">Back</a>`,
    fields: html`
      ${isFull ? notice('warning', `${liveKeysPerOrganization} keys are live, so there is no room for both: the old key stops at once, whatever you choose. Revoke another key first to have an overlap.`) : nothing}
      ${selectField(state, {
        name: 'overlapHours',
        label: 'Both keys work for',
        options: overlap.choices,
        hint: `The time you need to put the new key in place, at most ${keyRotationOverlapMaxDays} days. If the old one got out, choose “not at all”.`,
      })}
      ${expiryField(state, visit.console.now())}`,
  });
}
