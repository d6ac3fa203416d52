import type { Html } from '../web/html.ts';
import { shownOnce } from './secret.ts';

/** Recovery codes, this once. */
export function recoveryCodes(codes: readonly string[]): Html {
  return shownOnce({
    label: 'Recovery codes',
    value: codes.join('\n'),
    several: true,
    advice:
      'Each lets you in once when your phone or passkey is lost. Print them, or keep them where you can read them without that phone, and not beside your password: with both, anybody is in.',
  });
}
