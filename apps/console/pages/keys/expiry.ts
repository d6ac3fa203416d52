import { z } from 'zod';
import { dayMs } from '#domain/contract/durations.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { choiceField, textField } from '../../components/form.ts';
import { day } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';

/** The default expiry in days, so that a forgotten key stops working. */
const defaultDays = 90;

/** The fields of an expiry, validated by `checkExpiry` and read by `readExpiry`. */
export const expiryFields = {
  expiry: z.enum(['offered', 'never', 'date'], { error: 'Choose when the key expires.' }),
  expiresOn: z.string().trim().default(''),
};

interface Expiry {
  expiry: 'offered' | 'never' | 'date';
  expiresOn: string;
}

/** Requires a day when a custom date is chosen; for `.superRefine`. */
export function checkExpiry({ expiry, expiresOn }: Expiry, context: z.RefinementCtx): void {
  if (expiry === 'date' && !z.iso.date().safeParse(expiresOn).success)
    context.addIssue({ code: 'custom', path: ['expiresOn'], message: 'Choose the last day.' });
}

/** Returns the end of the chosen day in UTC; null: never. The domain rejects a day in the past. */
export function readExpiry({ expiry, expiresOn }: Expiry, now: Date): Date | null {
  if (expiry === 'never') return null;
  return expiry === 'offered' ? defaultExpiry(now) : new Date(`${expiresOn}T23:59:59.999Z`);
}

const defaultExpiry = (now: Date) => new Date(now.getTime() + defaultDays * dayMs);

/** The initial values of the fields. */
export const initialExpiry = { expiry: 'offered', expiresOn: '' };

export function expiryField(state: FormState, now: Date): Html {
  return html`${choiceField(state, {
    name: 'expiry',
    label: 'Expires',
    kind: 'radio',
    choices: [
      {
        value: 'offered',
        label: `In ${defaultDays} days`,
        hint: html`On ${day(defaultExpiry(now))}. You can rotate the key before then.`,
      },
      { value: 'never', label: 'Never', hint: 'The key works until it is revoked.' },
      { value: 'date', label: 'Custom date' },
    ],
  })}
  ${textField(state, {
    name: 'expiresOn',
    label: 'Last day',
    type: 'date',
    required: false,
    hint: 'For a custom date. The key works until this day ends in UTC.',
  })}`;
}
