import type { Html } from '../web/html.ts';
import { shownOnce } from './secret.ts';

/** Recovery codes, this once. */
export function recoveryCodes(codes: readonly string[]): Html {
  return shownOnce({
    label: 'Recovery codes',
    value: codes.join('\n'),
    advice:
      'Each lets you in once when your phone or passkey is lost. Print them, or keep them in a password manager: not where your password is.',
  });
}
