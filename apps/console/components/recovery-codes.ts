import type { Html } from '../web/html.ts';
import { shownOnce } from './secret.ts';

/** Recovery codes, this once. */
export function recoveryCodes(codes: readonly string[]): Html {
  return shownOnce({
    label: 'Recovery codes',
    value: codes.join('\n'),
    several: true,
    advice:
      'Each code signs you in once if you lose your phone or passkey. Print them, or store them apart from that phone and from your password.',
  });
}
