import { type Html, html } from '#runtime/pages/html.ts';
import { notice } from './notice.ts';

/**
 * For a member whose sign-in an organization has not confirmed. It names no organization, because
 * the sign-in may be another person's.
 */
export const unconfirmedSentence = 'You are a member of this organization, but it has not confirmed your sign-in.';

/** What they can do about it. */
export const unconfirmedNext =
  'Ask the person who manages its members for a link, and open it while you are signed in. Support can confirm it too.';

/** Renders the notice that `count` organizations, at least one, are not listed. */
export const unconfirmedNotice = (count: number): Html => {
  const which = count === 1 ? 'One organization is' : `${count} organizations are`;
  const why = 'because your sign-in is not confirmed there.';
  return notice('info', html`${which} not listed, ${why} ${unconfirmedNext}`);
};
