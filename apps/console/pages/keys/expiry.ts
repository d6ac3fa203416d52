import { z } from 'zod';
import { choiceField, textField } from '../../components/form.ts';
import { day } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';

/** What is offered, since a key that nobody remembers should end by itself. */
const offeredDays = 90;
const dayMs = 86_400_000;

/**
 * The fields of a form that sets an expiry. `readExpiry` reads them once the form is checked by
 * `expiryGiven`.
 */
export const expiryFields = {
  expiry: z.enum(['offered', 'never', 'date'], { error: 'Choose when the key expires.' }),
  expiresOn: z.string().trim().default(''),
};

interface Expiry {
  expiry: 'offered' | 'never' | 'date';
  expiresOn: string;
}

/** For `.superRefine`: a day is given when one is wanted. */
export function expiryGiven({ expiry, expiresOn }: Expiry, context: z.RefinementCtx): void {
  if (expiry === 'date' && !z.iso.date().safeParse(expiresOn).success)
    context.addIssue({ code: 'custom', path: ['expiresOn'], message: 'Choose the last day on which the key works.' });
}

/**
 * When the key expires: the end of the day chosen, in UTC. Null: never. The domain refuses a day
 * that has passed.
 */
export function readExpiry({ expiry, expiresOn }: Expiry, now: Date): Date | null {
  if (expiry === 'never') return null;
  return expiry === 'offered' ? offeredUntil(now) : new Date(`${expiresOn}T23:59:59.999Z`);
}

const offeredUntil = (now: Date) => new Date(now.getTime() + offeredDays * dayMs);

/** What such a form begins with. */
export const freshExpiry = { expiry: 'offered', expiresOn: '' };

export function expiryField(state: FormState, now: Date): Html {
  return html`${choiceField(state, {
    name: 'expiry',
    label: 'Expires',
    kind: 'radio',
    choices: [
      {
        value: 'offered',
        label: `In ${offeredDays} days`,
        hint: html`On ${day(offeredUntil(now))}. You can rotate it before, without a gap.`,
      },
      { value: 'never', label: 'Never', hint: 'It works until somebody revokes it.' },
      { value: 'date', label: 'At the end of a day of your choice' },
    ],
  })}
  ${textField(state, {
    name: 'expiresOn',
    label: 'Last day',
    type: 'date',
    required: false,
    hint: 'The key works until that day ends in UTC. Only asked for “a day of your choice”.',
  })}`;
}
