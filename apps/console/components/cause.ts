import { type Cause, causes, factsOf } from '#delivery/post/outcome.ts';

/**
 * Returns why an attempt was not accepted, in words: its explanation without the remedy. Codes are
 * for programs: they are in addresses, downloads and orgctl.
 */
export function describeCause(cause: string | null): string {
  if (cause === 'lost') return 'The outcome was not recorded';
  const known = causes.find((each): each is Cause => each === cause);
  return known === undefined ? 'Unknown cause' : (factsOf(known).explanation.split(/[:.] |\.$/)[0] ?? '');
}
