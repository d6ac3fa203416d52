import { expect, it } from 'vitest';
import { exactTime, relativeTime, time } from '../../../apps/console/components/time.ts';

it('a time that JavaScript does not know is shown as none, and breaks no page', () => {
  // How the driver returns PostgreSQL's infinity, and years above 275760.
  const unknown = [Number.POSITIVE_INFINITY as unknown as Date, new Date(Number.NaN), 'infinity'];
  for (const at of unknown)
    for (const render of [time, exactTime, relativeTime])
      expect(String(render(at, 'Never'))).toBe('<span class="quiet">Never</span>');
});
