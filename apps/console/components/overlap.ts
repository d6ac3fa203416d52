import type { z } from 'zod';

/**
 * Returns the choices and the form field for how long an old key or secret continues to work, in
 * hours, up to `maxDays`. `none` is the label of no overlap.
 */
export function overlapField(maxDays: number, { none, problem }: { none: string; problem: string }) {
  const choices = [
    { value: '0', label: none },
    { value: '1', label: '1 hour' },
    ...Array.from({ length: maxDays }, (_, index) => ({
      value: String((index + 1) * 24),
      label: index === 0 ? '1 day' : `${index + 1} days`,
    })),
  ];
  const hours = (text: z.ZodString) =>
    text.refine((given) => choices.some(({ value }) => value === given), problem).transform(Number);
  return { choices, hours };
}
