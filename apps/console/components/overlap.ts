import { z } from 'zod';
import type { Html } from '#runtime/pages/html.ts';
import type { FormState } from '../web/form.ts';
import { selectField } from './form.ts';

/**
 * Returns the form field for how long an old key or secret continues to work, in hours.
 *
 * @param thing - what overlaps, and `verb` what it does: `secret`, `sign`.
 */
export function overlapField(maxDays: number, thing: 'key' | 'secret', verb: 'work' | 'sign') {
  const problem = `Choose how long both ${thing}s ${verb}.`;
  const hint =
    `How long both ${thing}s ${verb}, up to ${maxDays} days. ` + `If the old ${thing} leaked, choose “No overlap”.`;
  const options = [
    { value: '0', label: `No overlap. The old ${thing} stops ${verb}ing immediately.` },
    { value: '1', label: '1 hour' },
    ...Array.from({ length: maxDays }, (_, index) => ({
      value: String((index + 1) * 24),
      label: index === 0 ? '1 day' : `${index + 1} days`,
    })),
  ];
  return {
    schema: z
      .string({ error: problem })
      .refine((given) => options.some(({ value }) => value === given), problem)
      .transform(Number),
    render: (state: FormState): Html => selectField(state, { name: 'overlapHours', label: 'Overlap', options, hint }),
  };
}
